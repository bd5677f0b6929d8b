// Packages that only some need: they are loaded when a setting asks for them, and whoever lacks one is told its name.

/** Something that a setting asks for cannot be had here. */
export class UnmetNeed extends Error {
  override name = "UnmetNeed";
}

export class MissingPackage extends UnmetNeed {
  constructor(what: string, name: string, cause: unknown) {
    super(`${what} needs the package ${name}: npm install ${name}`, { cause });
    this.name = "MissingPackage";
  }
}

/** `load` imports it, by a name that can be read in the source. */
export async function optional<Module>(what: string, name: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ERR_MODULE_NOT_FOUND") throw new MissingPackage(what, name, error);
    throw error;
  }
}
