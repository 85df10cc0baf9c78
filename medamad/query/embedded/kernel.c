/* The inner loops of queries: which views of a part match, their sums, the views of visits.

   medamad/query/embedded/kernel.py calls these functions, and says what they return. Nothing here allocates
   or keeps anything.

   Columns are what segments hold: unsigned numbers of 1, 2, 4 or 8 bytes, at any address. They are
   checksummed, but no number of theirs is trusted to be in bounds. */

#include <stddef.h>
#include <stdint.h>

enum { BLOCK = 4096, FEW = 4, SUMS = 6 };
/* As in medamad/storage/segments/format.py. */
enum { VISITOR = 1, PAGE_VISITOR = 2, TIMED = 4, BOUNCED = 8, FLAGS = 16 };

typedef uint16_t __attribute__((aligned(1), may_alias)) number16;
typedef uint32_t __attribute__((aligned(1), may_alias)) number32;
typedef uint64_t __attribute__((aligned(1), may_alias)) number64;

typedef struct {
    int64_t address; /* 0 for no column */
    int64_t width;   /* bytes of a number, or 0 if one of 4 bytes stands for all rows */
} column;

/* Which codes match: matches[code] is 1 or 0, and 0 at the end, which is matches[size]. There are at
   least 2**16 entries. If there are up to FEW that match, they are in codes as well. */
typedef struct {
    int64_t matches;
    int64_t size;
    int64_t count; /* how many are in codes, -1 if there are more */
    int64_t codes[FEW];
} filter;

/* Views of a part: those of the rows begin up to end that are in a mask, or all of these if it is 0; a
   column to add up by, flags and durations. */
typedef struct {
    int64_t begin, end, mask;
    column number, flags, duration;
} views;

static inline const void *at(column of, int64_t row) {
    return (const uint8_t *)(intptr_t)of.address + row * of.width;
}

/* 64 numbers, and a bit for each. */
#define VECTOR(TYPE) __attribute__((ext_vector_type(64), aligned(1))) TYPE
typedef VECTOR(uint8_t) vector8;
typedef VECTOR(uint16_t) vector16;
typedef VECTOR(uint32_t) vector32;
typedef VECTOR(uint64_t) vector64;
typedef __attribute__((ext_vector_type(64))) _Bool bits;

static inline uint64_t word_of(bits from) {
    uint64_t word;
    __builtin_memcpy(&word, &from, sizeof word);
    return word;
}

/* Clear the bits of the numbers that are none of a few codes. */
#define KEEP_FEW(TYPE, VECTOR)                                                                     \
    do {                                                                                           \
        const TYPE *numbers = at(of, first);                                                       \
        for (int64_t w = 0; w * 64 < n; w++) {                                                     \
            VECTOR some;                                                                           \
            uint64_t found = 0;                                                                    \
            if (w * 64 + 64 <= n)                                                                  \
                some = *(const VECTOR *)(numbers + w * 64);                                        \
            else                                                                                   \
                for (int64_t i = 0; i < 64; i++) some[i] = w * 64 + i < n ? numbers[w * 64 + i] : 0; \
            for (int64_t k = 0; k < by->count; k++)                                                \
                if ((int64_t)(TYPE)by->codes[k] == by->codes[k])                                           \
                    found |= word_of(__builtin_convertvector(some == (TYPE)by->codes[k], bits));   \
            mask[w] &= found;                                                                      \
        }                                                                                          \
    } while (0)

/* Clear the bits of the numbers whose code does not match. */
#define KEEP(TYPE, CODE)                                                                           \
    do {                                                                                           \
        const TYPE *numbers = at(of, first);                                                       \
        for (int64_t w = 0; w * 64 < n; w++) {                                                     \
            if (!mask[w]) continue;                                                                \
            int64_t count = n - w * 64 < 64 ? n - w * 64 : 64;                                     \
            uint8_t found[64] = {0};                                                               \
            for (int64_t i = 0; i < count; i++) {                                                  \
                uint64_t number = numbers[w * 64 + i];                                             \
                found[i] = matches[CODE];                                                          \
            }                                                                                      \
            mask[w] &= word_of(__builtin_convertvector(*(const vector8 *)found != 0, bits));       \
        }                                                                                          \
    } while (0)

static void keep(column of, int64_t first, int64_t n, const filter *by, uint64_t *restrict mask) {
    const uint8_t *restrict matches = (const uint8_t *)(intptr_t)by->matches;
    uint64_t size = (uint64_t)by->size;
    int is_few = by->count >= 0;
    switch (of.width) {
        case 1:
            if (is_few) KEEP_FEW(uint8_t, vector8);
            else KEEP(uint8_t, number);
            break;
        case 2:
            if (is_few) KEEP_FEW(number16, vector16);
            else KEEP(number16, number);
            break;
        case 4:
            if (is_few) KEEP_FEW(number32, vector32);
            else KEEP(number32, number < size ? number : size);
            break;
        default:
            if (is_few) KEEP_FEW(number64, vector64);
            else KEEP(number64, number < size ? number : size);
    }
}

static inline int64_t in_block(int64_t first, int64_t end) {
    return end - first < BLOCK ? end - first : BLOCK;
}

/* Write a bit for each row of a part: whether each of some columns matches its filter. */
void medamad_match(const column *columns, const filter *filters, int64_t count, int64_t size,
                   uint8_t *restrict out) {
    uint64_t mask[BLOCK / 64];
    for (int64_t first = 0; first < size; first += BLOCK) {
        int64_t n = in_block(first, size);
        for (int64_t w = 0; w * 64 < n; w++)
            mask[w] = n - w * 64 < 64 ? ((uint64_t)1 << (n - w * 64)) - 1 : UINT64_MAX;
        for (int64_t k = 0; k < count; k++) keep(columns[k], first, n, filters + k, mask);
        __builtin_memcpy(out + first / 8, mask, (size_t)(n + 7) / 8);
    }
}

/* Write the rows of a mask; return how many there are. */
int64_t medamad_rows(const uint64_t *mask, int64_t size, int64_t *restrict out) {
    int64_t count = 0;
    for (int64_t first = 0; first < size; first += 64)
        for (uint64_t word = mask[first / 64]; word; word &= word - 1)
            out[count++] = first + __builtin_ctzll(word);
    return count;
}

/* Copy some rows of a block, given by rows, or the first n if that is NULL. Numbers that take more
   than 32 bits become the greatest that does not. */
#define COPY(TYPE)                                                                                 \
    do {                                                                                           \
        const TYPE *numbers = at(of, first);                                                       \
        if (rows)                                                                                  \
            for (int64_t i = 0; i < n; i++) out[i] = (uint32_t)numbers[rows[i]];                   \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) out[i] = (uint32_t)numbers[i];                         \
    } while (0)

static void copy(column of, int64_t first, const uint16_t *rows, int64_t n,
                 uint32_t *restrict out) {
    switch (of.width) {
        case 0:
            for (int64_t i = 0; i < n; i++) out[i] = *(const number32 *)(intptr_t)of.address;
            break;
        case 1: COPY(uint8_t); break;
        case 2: COPY(number16); break;
        case 4: COPY(number32); break;
        default: {
            const number64 *numbers = at(of, first);
            for (int64_t i = 0; i < n; i++) {
                uint64_t number = numbers[rows ? rows[i] : i];
                out[i] = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
            }
        }
    }
}

/* A block of views: their rows relative to the first one, NULL if it has all of them. */
typedef struct {
    int64_t first, n;
    const uint16_t *rows;
} block;

static block block_at(const views *part, int64_t first, uint16_t *restrict rows) {
    int64_t n = in_block(first, part->end), shift = first & 7, count = 0;
    if (!part->mask) return (block){first, n, NULL};
    /* 64 bits can be read at any row. */
    const uint8_t *set = (const uint8_t *)(intptr_t)part->mask + (first >> 3);
    for (int64_t w = 0; w * 64 < n; w++) {
        uint64_t low = *(const number64 *)(set + w * 8), high = set[w * 8 + 8];
        uint64_t word = low >> shift | high << 1 << (63 - shift);
        if (n - w * 64 < 64) word &= ((uint64_t)1 << (n - w * 64)) - 1;
        for (; word; word &= word - 1) rows[count++] = (uint16_t)(w * 64 + __builtin_ctzll(word));
    }
    return (block){first, count, rows};
}

/* Copy the columns of views; numbers may be NULL. */
int64_t medamad_gather(const views *parts, int64_t part_count, uint32_t *restrict numbers,
                       uint8_t *restrict flags, uint32_t *restrict durations) {
    uint16_t rows[BLOCK];
    uint32_t some[BLOCK];
    int64_t count = 0;
    for (const views *part = parts; part < parts + part_count; part++) {
        for (int64_t first = part->begin; first < part->end; first += BLOCK) {
            block found = block_at(part, first, rows);
            if (numbers) copy(part->number, first, found.rows, found.n, numbers + count);
            copy(part->duration, first, found.rows, found.n, durations + count);
            if (part->flags.address) {
                copy(part->flags, first, found.rows, found.n, some);
                for (int64_t i = 0; i < found.n; i++) flags[count + i] = (uint8_t)some[i];
            }
            count += found.n;
        }
    }
    return count;
}

/* What is counted by one number: a line of the processor's cache. */
typedef struct {
    int64_t duration_ms;
    uint32_t views[14]; /* by place_of_flags */
} sums;

/* BOUNCED, the uppermost flag, comes only with TIMED, the one below it: 12 places are enough. */
static inline uint32_t place_of_flags(uint32_t flags) {
    flags &= FLAGS - 1;
    return flags - (flags >> 1 & 4);
}

void medamad_tally(const views *parts, int64_t part_count, int64_t size, sums *restrict by_number) {
    uint16_t rows[BLOCK];
    uint32_t numbers[BLOCK], flags[BLOCK], durations[BLOCK];
    __builtin_memset(durations, 0, sizeof durations);
    for (const views *part = parts; part < parts + part_count; part++) {
        for (int64_t first = part->begin; first < part->end; first += BLOCK) {
            block found = block_at(part, first, rows);
            copy(part->number, first, found.rows, found.n, numbers);
            copy(part->flags, first, found.rows, found.n, flags);
            if (part->duration.address)
                copy(part->duration, first, found.rows, found.n, durations);
            for (int64_t i = 0; i < found.n; i++) {
                /* One more place takes what is out of bounds. */
                sums *to = by_number + (numbers[i] < size ? numbers[i] : size);
                to->views[place_of_flags(flags[i])]++;
                to->duration_ms += durations[i];
            }
        }
    }
}

/* Write the sums of each number, a row of size for each of them, in the order of counters.py. */
void medamad_sums(const sums *by_number, int64_t size, int64_t *restrict out) {
    for (int64_t number = 0; number < size; number++) {
        int64_t row[SUMS] = {0};
        for (uint32_t flags = 0; flags < FLAGS; flags++) {
            if ((flags & (BOUNCED | TIMED)) == BOUNCED) continue;
            int64_t count = by_number[number].views[place_of_flags(flags)];
            row[0] += count;
            if (flags & VISITOR) row[1] += count;
            if (flags & PAGE_VISITOR) row[2] += count;
            if ((flags & VISITOR) && (flags & TIMED)) row[3] += count;
            if ((flags & VISITOR) && (flags & BOUNCED)) row[4] += count;
        }
        row[5] = by_number[number].duration_ms;
        for (int64_t k = 0; k < SUMS; k++) out[k * size + number] = row[k];
    }
}

/* Set the bits of the views that have a row of an event with a matching property. */
void medamad_mark_views(const column *columns, int64_t n, const filter *by, uint8_t *restrict set,
                        int64_t views) {
    const uint8_t *matches = (const uint8_t *)(intptr_t)by->matches;
    uint32_t properties[BLOCK], rows[BLOCK], greatest = (uint32_t)by->size;
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t some = in_block(first, n), count = 0;
        copy(columns[0], first, NULL, some, properties);
        copy(columns[1], first, NULL, some, rows);
        for (int64_t i = 0; i < some; i++) {
            uint32_t row = rows[i];
            rows[count] = row;
            count += matches[properties[i] < greatest ? properties[i] : greatest];
        }
        for (int64_t k = 0; k < count; k++)
            if (rows[k] < views) set[rows[k] >> 3] |= (uint8_t)(1 << (rows[k] & 7));
    }
}

/* The own events of a part: the property of each row and the row of its view, a bit for each row that
   begins an event, and one for each of the views that matches. */
typedef struct {
    column property, view;
    int64_t n, begins, matching, views;
} events;

/* Add the rows of events with a matching property, of views that match, to the counts of their
   properties, with those from size on in one more; after these, count how many events they are of. */
void medamad_count_events(const events *parts, int64_t part_count, const filter *by, int64_t size,
                          int64_t *restrict counts) {
    const uint8_t *matches = (const uint8_t *)(intptr_t)by->matches;
    uint32_t properties[BLOCK], rows[BLOCK], greatest = (uint32_t)by->size;
    uint16_t found[BLOCK];
    for (int64_t p = 0; p < part_count; p++) {
        const events *part = parts + p;
        const uint8_t *begins = (const uint8_t *)(intptr_t)part->begins;
        const uint8_t *matching = (const uint8_t *)(intptr_t)part->matching;
        uint32_t is_counted = 0;
        for (int64_t first = 0; first < part->n; first += BLOCK) {
            int64_t n = in_block(first, part->n), count = 0;
            copy(part->view, first, NULL, n, rows);
            for (int64_t i = 0; i < n; i++) {
                uint32_t row = rows[i];
                found[count] = (uint16_t)i;
                count += row < part->views ? matching[row >> 3] >> (row & 7) & 1 : 0;
            }
            copy(part->property, first, found, count, properties);
            for (int64_t k = 0; k < count; k++) {
                uint32_t property = properties[k];
                int64_t row = first + found[k];
                uint32_t is_found = matches[property < greatest ? property : greatest];
                counts[property < size ? property : size] += is_found;
                /* All rows of an event are of the same view: none of them is left out. */
                is_counted &= (begins[row >> 3] >> (row & 7) & 1) ^ 1;
                counts[size + 1] += is_found & (is_counted ^ 1);
                is_counted |= is_found;
            }
        }
    }
}

/* Durations fall into buckets: 0 for unknown ones, 1 for those below 256 ms, and then four for each
   doubling. The last one has all that are longer. */
enum { BUCKETS = 64, MANTISSA_BITS = 23, FIRST = (127 + 8) * 4 - 2 };

static void find_buckets(const uint32_t *duration_ms, int64_t n, uint32_t *restrict buckets) {
    for (int64_t i = 0; i < n; i++) {
        int32_t positive = (int32_t)(duration_ms[i] < INT32_MAX ? duration_ms[i] : INT32_MAX);
        /* The exponent and two bits after it. Rounding keeps the order. */
        float number = (float)positive;
        int32_t bits;
        __builtin_memcpy(&bits, &number, sizeof bits);
        int32_t bucket = (bits >> (MANTISSA_BITS - 2)) - FIRST;
        bucket = bucket < 1 ? 1 : bucket;
        bucket = bucket < BUCKETS ? bucket : BUCKETS - 1;
        buckets[i] = positive ? (uint32_t)bucket : 0;
    }
}

/* Write the number, the duration and the bucket of each view of a block, with size for greater numbers;
   return how many there are. */
static int64_t durations_of_block(const views *part, int64_t first, int64_t size,
                                  uint32_t *restrict numbers, uint32_t *restrict durations,
                                  uint32_t *restrict buckets) {
    uint16_t rows[BLOCK];
    block found = block_at(part, first, rows);
    copy(part->number, first, found.rows, found.n, numbers);
    copy(part->duration, first, found.rows, found.n, durations);
    find_buckets(durations, found.n, buckets);
    uint32_t greatest = (uint32_t)size;
    for (int64_t i = 0; i < found.n; i++)
        numbers[i] = numbers[i] < greatest ? numbers[i] : greatest;
    return found.n;
}

void medamad_count_durations(const views *parts, int64_t part_count, const uint32_t *group_of,
                             int64_t size, uint32_t *restrict counts) {
    uint32_t numbers[BLOCK], durations[BLOCK], buckets[BLOCK];
    for (const views *part = parts; part < parts + part_count; part++) {
        for (int64_t first = part->begin; first < part->end; first += BLOCK) {
            int64_t n = durations_of_block(part, first, size, numbers, durations, buckets);
            for (int64_t i = 0; i < n; i++) counts[group_of[numbers[i]] * BUCKETS + buckets[i]]++;
        }
    }
}

/* The places of quartile q among count durations that ascend: it is between those two. */
typedef struct {
    int64_t low, high;
} quartile;

static quartile quartile_of(int64_t count, int64_t q) {
    int64_t place = (count - 1) * q;
    return (quartile){place / 4, (place + 3) / 4};
}

static int64_t count_known(const uint32_t *of_group) {
    int64_t count = 0;
    for (int64_t bucket = 1; bucket < BUCKETS; bucket++) count += of_group[bucket];
    return count;
}

/* Number the buckets that have quartiles from 1 on, in slots, where the others are 0, and write
   where the durations of each begin; return where the last ones end. */
int64_t medamad_plan(const uint32_t *counts, int64_t group_count, uint32_t *restrict slots,
                     int64_t *restrict begins) {
    int64_t end = 1;
    uint32_t slot = 0;
    begins[0] = 0;
    for (int64_t group = 0; group < group_count; group++) {
        const uint32_t *of_group = counts + group * BUCKETS;
        int64_t count = count_known(of_group), before = 0;
        for (int64_t bucket = 1; bucket < BUCKETS && before < count; bucket++) {
            int64_t after = before + of_group[bucket];
            int has_quartile = 0;
            for (int64_t q = 1; q <= 3; q++) {
                quartile places = quartile_of(count, q);
                has_quartile |= places.low < after && places.high >= before;
            }
            if (has_quartile && after > before) {
                slots[group * BUCKETS + bucket] = ++slot;
                begins[slot] = end;
                end += after - before;
            }
            before = after;
        }
    }
    return end;
}

/* Write the durations in numbered buckets. next has the place for the next one of each number, and
   wanted a bit for each numbered bucket of the group of a view's number. */
void medamad_collect_durations(const views *parts, int64_t part_count, const uint32_t *group_of,
                               int64_t size, const uint64_t *wanted, const uint32_t *slots,
                               int64_t *restrict next, uint32_t *restrict out, int64_t end) {
    uint32_t numbers[BLOCK], durations[BLOCK], buckets[BLOCK];
    uint16_t rows[BLOCK];
    for (const views *part = parts; part < parts + part_count; part++) {
        for (int64_t first = part->begin; first < part->end; first += BLOCK) {
            int64_t n = durations_of_block(part, first, size, numbers, durations, buckets);
            int64_t count = 0;
            for (int64_t i = 0; i < n; i++) {
                rows[count] = (uint16_t)i;
                count += wanted[numbers[i]] >> buckets[i] & 1;
            }
            for (int64_t k = 0; k < count; k++) {
                uint32_t i = rows[k];
                int64_t place = next[slots[group_of[numbers[i]] * BUCKETS + buckets[i]]]++;
                if (place < end) out[place] = durations[i];
            }
        }
    }
}

/* Return the number at a place among n numbers that ascend. */
static uint32_t number_at(const uint32_t *numbers, int64_t n, int64_t place) {
    uint32_t least = UINT32_MAX, greatest = 0;
    for (int64_t i = 0; i < n; i++) {
        least = numbers[i] < least ? numbers[i] : least;
        greatest = numbers[i] > greatest ? numbers[i] : greatest;
    }
    while (least < greatest) {
        uint32_t middle = least + (greatest - least) / 2, up_to = 0;
        for (int64_t i = 0; i < n; i++) up_to += numbers[i] <= middle;
        if (up_to > place)
            greatest = middle;
        else
            least = middle + 1;
    }
    return least;
}

/* Write both numbers that each quartile is between, three rows of group_count each. */
void medamad_quartiles(const uint32_t *counts, int64_t group_count, const uint32_t *slots,
                       const int64_t *begins, const uint32_t *durations, int64_t *restrict low,
                       int64_t *restrict high) {
    for (int64_t group = 0; group < group_count; group++) {
        const uint32_t *of_group = counts + group * BUCKETS, *slots_of_group = slots + group * BUCKETS;
        int64_t count = count_known(of_group);
        for (int64_t q = 1; q <= 3 && count; q++) {
            quartile places = quartile_of(count, q);
            int64_t found = (q - 1) * group_count + group, bucket = 1, before = 0;
            while (before + of_group[bucket] <= places.low) before += of_group[bucket++];
            low[found] = number_at(durations + begins[slots_of_group[bucket]], of_group[bucket],
                                   places.low - before);
            high[found] = low[found];
            if (places.high == places.low) continue;
            while (before + of_group[bucket] <= places.high) before += of_group[bucket++];
            high[found] = number_at(durations + begins[slots_of_group[bucket]], of_group[bucket],
                                    places.high - before);
        }
    }
}

/* For each group the least and the greatest durations of three windows; the fourth one is empty. */
typedef uint32_t __attribute__((ext_vector_type(4), aligned(4))) four;
typedef struct {
    four least, greatest;
} windows;

/* How many durations of a group are below each window, and how many there are. */
enum { WINDOWS = 3, KNOWN = 3 };

/* Count the durations of each group, and write those in its windows, each with the number of its
   window above it; return how many. out has room for WINDOWS durations of each view. */
int64_t medamad_find_near(const views *parts, int64_t part_count, const uint32_t *group_of,
                          int64_t size, const windows *of_groups, int64_t group_count,
                          four *restrict counts, uint64_t *restrict out) {
    uint16_t rows[BLOCK];
    uint32_t numbers[BLOCK], durations[BLOCK], greatest = (uint32_t)size;
    int64_t count = 0;
    for (const views *part = parts; part < parts + part_count; part++) {
        for (int64_t first = part->begin; first < part->end; first += BLOCK) {
            block found = block_at(part, first, rows);
            copy(part->number, first, found.rows, found.n, numbers);
            copy(part->duration, first, found.rows, found.n, durations);
            for (int64_t i = 0; i < found.n; i++) {
                uint32_t number = numbers[i] < greatest ? numbers[i] : greatest;
                uint32_t group = durations[i] ? group_of[number] : (uint32_t)group_count;
                const windows *of = of_groups + group;
                four below = (four)(durations[i] < of->least);
                four inside = ~below & (four)(durations[i] <= of->greatest);
                below[KNOWN] = UINT32_MAX;
                counts[group] -= below;
                if (!__builtin_reduce_or(inside)) continue;
                for (uint64_t window = 0; window < WINDOWS; window++) {
                    out[count] = ((uint64_t)group * WINDOWS + window) << 32 | durations[i];
                    count += inside[window] & 1;
                }
            }
        }
    }
    return count;
}

/* Durations in the windows of groups, and how many are below these. Those in window w ascend from
   begins[w] up to ends[w]. */
typedef struct {
    const uint32_t *durations, *begins, *ends;
    const four *counts;
} near;

/* Return the number at a place among n and m numbers that ascend. */
static uint32_t number_of_two(const uint32_t *some, int64_t n, const uint32_t *others, int64_t m,
                              int64_t place) {
    int64_t least = place > m ? place - m : 0, greatest = place < n ? place : n;
    while (least < greatest) {
        int64_t middle = least + (greatest - least) / 2;
        if (some[middle] < others[place - middle - 1])
            least = middle + 1;
        else
            greatest = middle;
    }
    /* So many of some are among those before the place. */
    if (least == n) return others[place - least];
    if (place - least == m) return some[least];
    return some[least] < others[place - least] ? some[least] : others[place - least];
}

/* Write what medamad_quartiles does, of durations in the same windows in two places. Return whether
   all quartiles are in their windows. */
int64_t medamad_near_quartiles(const near *some, const near *others, int64_t group_count,
                               int64_t *restrict low, int64_t *restrict high) {
    for (int64_t group = 0; group < group_count; group++) {
        four counts = some->counts[group] + others->counts[group];
        for (int64_t q = 1; q <= WINDOWS && counts[KNOWN]; q++) {
            int64_t window = group * WINDOWS + q - 1, found = (q - 1) * group_count + group;
            const uint32_t *of_some = some->durations + some->begins[window];
            const uint32_t *of_others = others->durations + others->begins[window];
            int64_t n = some->ends[window] - some->begins[window];
            int64_t m = others->ends[window] - others->begins[window];
            quartile places = quartile_of(counts[KNOWN], q);
            places.low -= counts[q - 1];
            places.high -= counts[q - 1];
            if (places.low < 0 || places.high >= n + m) return 0;
            low[found] = number_of_two(of_some, n, of_others, m, places.low);
            high[found] = number_of_two(of_some, n, of_others, m, places.high);
        }
    }
    return 1;
}

static inline uint64_t number_of(column of, int64_t row) {
    const void *number = at(of, row);
    switch (of.width) {
        case 1: return *(const uint8_t *)number;
        case 2: return *(const number16 *)number;
        case 4: return *(const number32 *)number;
        default: return *(const number64 *)number;
    }
}

/* Write the row of the first view of the visit of each of some views, -1 if none of the part's views is
   known to be it. */
void medamad_first_rows(const column *offsets, int64_t size, const int64_t *rows, int64_t n,
                        int64_t *restrict first_rows) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t row = (uint64_t)rows[i];
        uint64_t before = row < (uint64_t)size ? number_of(*offsets, rows[i]) - 1 : UINT64_MAX;
        first_rows[i] = before <= row ? (int64_t)(row - before) : -1;
    }
}

static inline int has(const uint64_t *mask, uint64_t row) { return mask[row >> 6] >> (row & 63) & 1; }

static inline void set(uint64_t *mask, uint64_t row) { mask[row >> 6] |= (uint64_t)1 << (row & 63); }

/* A bit for each of 64 rows or fewer: whether its view begins a visit. */
static uint64_t begun_in(column offsets, int64_t first, int64_t size) {
    static const filter one = {.count = 1, .codes = {1}};
    int64_t n = size - first < 64 ? size - first : 64;
    uint64_t begun = UINT64_MAX >> (64 - n);
    keep(offsets, first, n, &one, &begun);
    return begun;
}

/* Write the rows of the first views of the visits of n rows, relative to the first of these; size, where
   no visit begins, of those that the part does not have. */
static void begins_of(column offsets, int64_t size, int64_t first, const uint16_t *rows, int64_t n,
                      uint64_t *restrict begins) {
    uint32_t offset[BLOCK];
    copy(offsets, first, rows, n, offset);
    for (int64_t i = 0; i < n; i++) {
        uint64_t row = (uint64_t)(first + (rows ? rows[i] : i)), before = (uint64_t)offset[i] - 1;
        begins[i] = before <= row ? row - before : (uint64_t)size;
    }
}

/* Write a bit for each view of a part: whether it begins a visit that has any of some views. mask has a
   zero for each row, and one more. */
void medamad_begins_with(const views *part, const column *offsets, int64_t size,
                         uint64_t *restrict mask) {
    uint16_t rows[BLOCK];
    uint64_t begins[BLOCK];
    for (int64_t first = part->begin; first < part->end; first += BLOCK) {
        block found = block_at(part, first, rows);
        begins_of(*offsets, size, first, found.rows, found.n, begins);
        for (int64_t i = 0; i < found.n; i++) set(mask, begins[i]);
    }
    mask[size >> 6] &= ~((uint64_t)1 << (size & 63));
    for (int64_t first = 0; first < size; first += 64) mask[first / 64] &= begun_in(*offsets, first, size);
}

/* Write of the visits of a part that begin in the rows of a mask the places among all that begin there,
   and the rows of their first views; return how many there are. */
int64_t medamad_visits_at(const column *offsets, int64_t size, const uint64_t *chosen,
                          int64_t *restrict index, int64_t *restrict begins) {
    int64_t visits = 0, number = 0;
    for (int64_t first = 0; first < size; first += 64) {
        uint64_t begun = begun_in(*offsets, first, size);
        for (uint64_t word = chosen[first / 64]; word; word &= word - 1) {
            uint64_t below = (word & -word) - 1;
            index[visits] = number + __builtin_popcountll(begun & below);
            begins[visits++] = first + __builtin_ctzll(word);
        }
        number += __builtin_popcountll(begun);
    }
    return visits;
}

/* A bit for each of 64 rows or fewer: whether its visit begins in a row of a mask. */
static inline uint64_t of_visits_at(column offsets, int64_t size, int64_t first,
                                    const uint64_t *chosen) {
    int64_t n = size - first < 64 ? size - first : 64;
    uint64_t begins[64];
    uint8_t found[64] = {0};
    begins_of(offsets, size, first, NULL, n, begins);
    for (int64_t i = 0; i < n; i++) found[i] = (uint8_t)has(chosen, begins[i]);
    return word_of(__builtin_convertvector(*(const vector8 *)found != 0, bits));
}

/* Write a bit for each view of a part: whether its visit begins in a row of a mask. */
void medamad_mask_visits(const column *offsets, int64_t size, const uint64_t *chosen,
                         uint64_t *restrict mask) {
    for (int64_t first = 0; first < size; first += 64)
        mask[first / 64] = of_visits_at(*offsets, size, first, chosen);
}

/* The visits of a part that begin in the rows of a mask, and what they are added up by: codes of views,
   and numbers of visits. With spans, it is the last view of a visit that has its code, which is so many
   rows after the first. With neither spans nor numbers, a mask may have any views. Without a mask and
   offsets, each row is a visit. */
typedef struct {
    int64_t size, chosen;
    column offsets, codes, spans;
    column added[];
} visits;

static inline const visits *visits_of(const int64_t *parts, int64_t place, int64_t added) {
    return (const visits *)(parts + place * (8 + 2 * added));
}

#define GATHER(TYPE)                                                                               \
    for (int64_t i = 0; i < n; i++) out[i] = ((const TYPE *)(intptr_t)of.address)[places[i]]

static void gather(column of, const int64_t *restrict places, int64_t n, uint64_t *restrict out) {
    switch (of.width) {
        case 0:
            for (int64_t i = 0; i < n; i++) out[i] = *(const number32 *)(intptr_t)of.address;
            break;
        case 1: GATHER(uint8_t); break;
        case 2: GATHER(number16); break;
        case 4: GATHER(number32); break;
        default: GATHER(number64);
    }
}

/* Add n visits to sums, as medamad_sum_visits does. */
static void add_visits(const visits *part, const int64_t *restrict index, int64_t *restrict rows,
                       int64_t n, int64_t added_count, int64_t size, int64_t *restrict sums) {
    uint64_t codes[BLOCK], added[BLOCK];
    if (part->spans.address) {
        gather(part->spans, index, n, added);
        for (int64_t i = 0; i < n; i++) {
            uint64_t row = (uint64_t)rows[i] + added[i];
            rows[i] = row < (uint64_t)part->size ? (int64_t)row : rows[i];
        }
    }
    if (!part->codes.width) {
        /* All have the same code. */
        gather(part->codes, rows, 1, codes);
        int64_t *of_code = sums + (codes[0] < (uint64_t)size ? (int64_t)codes[0] : size) * (1 + added_count);
        of_code[0] += n;
        for (int64_t k = 0; k < added_count; k++) {
            gather(part->added[k], index, n, added);
            for (int64_t i = 0; i < n; i++) of_code[1 + k] += (int64_t)added[i];
        }
        return;
    }
    gather(part->codes, rows, n, codes);
    for (int64_t i = 0; i < n; i++) {
        codes[i] = (codes[i] < (uint64_t)size ? codes[i] : (uint64_t)size) * (uint64_t)(1 + added_count);
        sums[codes[i]]++;
    }
    for (int64_t k = 0; k < added_count; k++) {
        gather(part->added[k], index, n, added);
        for (int64_t i = 0; i < n; i++) sums[codes[i] + 1 + (uint64_t)k] += (int64_t)added[i];
    }
}

/* For each visit, add 1 to the first of the sums of its code, and to the others its numbers. There are
   sums of the codes below size, and of all others in one more row. */
void medamad_sum_visits(const int64_t *parts, int64_t part_count, int64_t added_count, int64_t size,
                        int64_t *restrict sums) {
    int64_t index[BLOCK], rows[BLOCK];
    for (int64_t p = 0; p < part_count; p++) {
        const visits *part = visits_of(parts, p, added_count);
        const uint64_t *chosen = (const uint64_t *)(intptr_t)part->chosen;
        int is_numbered = added_count || part->spans.address;
        int64_t n = 0, number = 0;
        for (int64_t first = 0; first < part->size; first += 64) {
            uint64_t begun = UINT64_MAX;
            uint64_t word = part->size - first < 64 ? begun >> (64 - (part->size - first)) : begun;
            if (chosen) word = chosen[first / 64];
            if (is_numbered && chosen) begun = begun_in(part->offsets, first, part->size);
            for (; word; word &= word - 1) {
                if (is_numbered)
                    index[n] = number + __builtin_popcountll(begun & ((word & -word) - 1));
                rows[n++] = first + __builtin_ctzll(word);
            }
            number += __builtin_popcountll(begun);
            if (n > BLOCK - 64) {
                add_visits(part, index, rows, n, added_count, size, sums);
                n = 0;
            }
        }
        add_visits(part, index, rows, n, added_count, size, sums);
    }
}

/* Where goals were reached in a part: the rows of n views and, if the order counts, when it was. */
typedef struct {
    int64_t rows, moments, n;
} reached_at;

/* The visits of a part that begin in the rows of a mask, and where they and others reached goals. */
typedef struct {
    int64_t size, chosen;
    column offsets;
    reached_at goals[];
} reached;

/* For each goal, count how often the visits reached it, and how many of them did. If there are moments,
   these are the visits that reached it after all goals before it, each of them as early as possible.
   steps has room for a number for each row of a part, and moments for two. */
void medamad_count_goals(const int64_t *parts, int64_t part_count, int64_t goal_count,
                         uint32_t *restrict steps, int64_t *restrict moments,
                         int64_t *restrict counts) {
    int64_t *conversions = counts, *visits = counts + goal_count;
    for (int64_t p = 0; p < part_count; p++) {
        const reached *part = (const reached *)(parts + p * (4 + 3 * goal_count));
        const uint64_t *chosen = (const uint64_t *)(intptr_t)part->chosen;
        int64_t *before = moments, *now = moments + part->size;
        __builtin_memset(steps, 0, (size_t)part->size * sizeof *steps);
        for (int64_t goal = 0; goal < goal_count; goal++) {
            const uint32_t *rows = (const uint32_t *)(intptr_t)part->goals[goal].rows;
            const int64_t *when = (const int64_t *)(intptr_t)part->goals[goal].moments;
            uint32_t done = (uint32_t)goal, step = done + 1;
            for (int64_t i = 0; i < part->goals[goal].n; i++) {
                uint64_t row = rows[i];
                if (row >= (uint64_t)part->size) continue;
                uint64_t offset = number_of(part->offsets, (int64_t)row) - 1;
                if (offset > row || !has(chosen, row - offset)) continue;
                uint64_t begin = row - offset;
                conversions[goal]++;
                if (!when) {
                    visits[goal] += steps[begin] != step;
                    steps[begin] = step;
                } else if (steps[begin] == done || steps[begin] == step) {
                    if (goal && when[i] < before[begin]) continue;
                    if (steps[begin] == done || when[i] < now[begin]) now[begin] = when[i];
                    visits[goal] += steps[begin] == done;
                    steps[begin] = step;
                }
            }
            int64_t *other = before;
            before = now;
            now = other;
        }
    }
}

/* Set bit i of of_visit if the row "from + i" is a view of the visit that begins in the row "begin", and is
   not after the row "last". The offset of such a row is its distance from the first, and one more. Of the
   caller, it also uses "numbers", the offsets of the part's "size" rows, and "places", which is 0 to 63. */
#define OF_VISIT(TYPE, VECTOR)                                                                     \
    do {                                                                                           \
        of_visit = 0;                                                                              \
        if (from >= 0 && from + 64 <= size)                                                        \
            of_visit = word_of(__builtin_convertvector(                                            \
                *(const VECTOR *)(numbers + from) == places + (TYPE)(from - begin + 1), bits));    \
        else                                                                                       \
            for (int64_t i = 0; i < 64; i++)                                                       \
                if (from + i >= begin && from + i < size)                                          \
                    of_visit |= (uint64_t)(numbers[from + i] == (uint64_t)(from + i - begin + 1)) << i; \
        if (from < begin) of_visit &= UINT64_MAX << (begin - from);                                \
        if (from + 63 > last) of_visit &= UINT64_MAX >> (from + 63 - last);                        \
    } while (0)

/* Views of visits that begin in the rows of a mask, and the codes of all views of the part. Of the visits
   that begin in it, spans has how many rows the last view is after the first. */
typedef struct {
    int64_t size, chosen;
    column offsets, codes, spans;
    int64_t visits;
    views views;
} beside;

#define COUNT_BESIDE(TYPE, VECTOR)                                                                 \
    do {                                                                                           \
        const TYPE *numbers = (const TYPE *)offsets;                                               \
        VECTOR places;                                                                             \
        for (int64_t i = 0; i < 64; i++) places[i] = (TYPE)i;                                      \
        for (int64_t i = 0; i < views.n; i++) {                                                    \
            int64_t row = views.first + (views.rows ? views.rows[i] : i);                          \
            int64_t before = (int64_t)numbers[row] - 1, begin = row - before;                      \
            if (before < 0 || begin < 0 || !has(chosen, (uint64_t)begin)) continue;                \
            int64_t found = -1, last = row - 1;                                                    \
            uint64_t of_visit;                                                                     \
            if (step < 0) {                                                                        \
                for (int64_t from = row - 64; found < 0 && from + 63 >= begin; from -= 64) {       \
                    OF_VISIT(TYPE, VECTOR);                                                        \
                    if (of_visit) found = from + 63 - __builtin_clzll(of_visit);                   \
                }                                                                                  \
            } else {                                                                               \
                uint64_t below = ((uint64_t)1 << (begin & 63)) - 1;                                \
                int64_t place =                                                                    \
                    ranks[begin >> 6] + __builtin_popcountll(begun[begin >> 6] & below);           \
                uint64_t span = place < part->visits ? number_of(part->spans, place) : 0;          \
                last = span < (uint64_t)(size - begin) ? begin + (int64_t)span : size - 1;         \
                for (int64_t from = row + 1; found < 0 && from <= last; from += 64) {              \
                    OF_VISIT(TYPE, VECTOR);                                                        \
                    if (of_visit) found = from + __builtin_ctzll(of_visit);                        \
                }                                                                                  \
            }                                                                                      \
            uint64_t code = found < 0 ? UINT64_MAX : number_of(part->codes, found);                \
            counts[code < (uint64_t)count_size ? code : (uint64_t)count_size]++;                   \
        }                                                                                          \
    } while (0)

static void count_beside(const beside *part, block views, int64_t step, const uint64_t *begun,
                         const int64_t *ranks, int64_t *restrict counts, int64_t count_size) {
    const void *offsets = (const void *)(intptr_t)part->offsets.address;
    const uint64_t *chosen = (const uint64_t *)(intptr_t)part->chosen;
    int64_t size = part->size;
    switch (part->offsets.width) {
        case 1: COUNT_BESIDE(uint8_t, vector8); break;
        case 2: COUNT_BESIDE(number16, vector16); break;
        case 4: COUNT_BESIDE(number32, vector32); break;
        default: COUNT_BESIDE(number64, vector64);
    }
}

/* For each of the views, count the code of its visit's next view, or with a step of -1 of the one before,
   and at size those that have none. begun and ranks have room for a number for each 64 rows. */
void medamad_count_beside(const beside *parts, int64_t part_count, int64_t step, int64_t size,
                          uint64_t *restrict begun, int64_t *restrict ranks,
                          int64_t *restrict counts) {
    uint16_t rows[BLOCK];
    for (const beside *part = parts; part < parts + part_count; part++) {
        for (int64_t first = 0, rank = 0; step > 0 && first < part->size; first += 64) {
            begun[first / 64] = begun_in(part->offsets, first, part->size);
            ranks[first / 64] = rank;
            rank += __builtin_popcountll(begun[first / 64]);
        }
        for (int64_t first = part->views.begin; first < part->views.end; first += BLOCK) {
            block found = block_at(&part->views, first, rows);
            count_beside(part, found, step, begun, ranks, counts, size);
        }
    }
}
