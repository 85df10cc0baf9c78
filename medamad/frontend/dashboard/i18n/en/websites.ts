export const websites = {};
