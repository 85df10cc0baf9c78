// Properties as they are written in a page: "name=value; name=value".

export const read = (text: string): Record<string, string> =>
  Object.fromEntries(
    text.split(";").flatMap((pair) => {
      const [name = "", ...value] = pair.split("=");
      return name.trim() ? [[name.trim(), value.join("=").trim()]] : [];
    }),
  );
