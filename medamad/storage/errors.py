"""Why a store cannot be opened. Each message tells the operator what to do."""


class StoreError(Exception):
    """The store cannot be opened or goes on no longer. `str(error)` is for the operator."""


class NoStore(StoreError):
    """There is no store in the directory."""


class StoreInUse(StoreError):
    """Another daemon has the store open."""


class WrongFormat(StoreError):
    """The file is not a store of ours, or of a version that this program does not know."""


class NoBackup(StoreError):
    """The file is not a backup of ours, or not as it was written."""


class Lost(StoreError):
    """A file of the open store is no longer the one that was opened."""


class Damaged(Exception):
    """Something stored is not what was written. `str(error)` says in what way."""


class DamagedSegment(Damaged):
    """A column or counter of a segment is damaged; `number` is the segment's, or the group's."""

    def __init__(self, number: int, told: str) -> None:
        super().__init__(told)
        self.number = number
