"""The exceptions of the package: a class for each cause, all of class SolverError and of the
built-in class that fits."""


class SolverError(Exception):
    """A failure of the library; the message says what was wrong and what to do."""


class InputError(SolverError, TypeError):
    """An argument of a type that cannot be used, such as a complex matrix."""


class InternalError(SolverError, RuntimeError):
    """A fault of the library itself."""


class NotConvergedWarning(UserWarning):
    """A solve ended without meeting its tolerance."""


# The causes by the built-in class that they belong to.
_CAUSES = {
    ValueError: """
        Parse UnsupportedFile Malformed InFile UnknownKind Archive NoVector Binary Checkpoint Generator InvalidCsr InvalidFormat
        Padding Foreign DuplicateOverflow TooLarge Operands Dimension UnknownBackend BadParameter BadCoordinates BadNearNull
        Unsupported BadSetting Study NotSquare NotSymmetric NotFinite ProductNotSymmetric BadDiagonal BadBlock RightHandSideScale
        RightHandSideNotFinite StartScale Config History Chain UnknownCommand UnknownMatrix NotInCatalog
    """,
    OSError: "Io Unwritable Fetch Plot",
    MemoryError: "OutOfMemory",
    ArithmeticError: "Breakdown",
    RuntimeError: "WrongProduct Rival NoDevice CpuOnly Threads Gpu OtherRank",
}

for _base, _names in _CAUSES.items():
    for _name in _names.split():
        globals()[f"{_name}Error"] = type(f"{_name}Error", (SolverError, _base), {"__module__": __name__})

__all__ = ["NotConvergedWarning", *(name for name in globals() if name.endswith("Error") and name[0].isupper())]
