"""Why a store cannot be opened or used. Each message tells the operator what to do."""


class StoreError(Exception):
    """The store cannot be opened or go on. `str(error)` is for the operator."""


class NoStore(StoreError):
    """There is no store in the folder."""


class StoreInUse(StoreError):
    """Another daemon has the store open."""


class WrongFormat(StoreError):
    """The file is not a store of medamad, or one in another format."""


class DamagedStore(StoreError):
    """The store's trees are damaged: to read them could end the process."""


class NoBackup(StoreError):
    """The file is not a backup of medamad, or not as it was written."""


class Lost(StoreError):
    """A file of the open store is no longer the one that was opened."""


class Damaged(Exception):
    """A stored value is not what was written. `str(error)` says in what way."""


class DamagedSegment(Damaged):
    """A column or counter is damaged; `number` is that of its segment or merged segment."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number
