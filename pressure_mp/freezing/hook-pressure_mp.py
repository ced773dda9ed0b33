"""PyInstaller's hook: modules are imported by name when they are first needed, scripts are data."""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules  # type: ignore[import-untyped]

#: Modules for commands and tests, which need libraries that a program with queues does not have.
_NOT_FOR_PROGRAMS = (
    *("pressure_mp.cli", "pressure_mp.dashboard", "pressure_mp.freezing"),
    *("pressure_mp.joblib", "pressure_mp.testing"),
)


def _is_for_programs(name: str) -> bool:
    return not name.startswith(_NOT_FOR_PROGRAMS)


hiddenimports = collect_submodules("pressure_mp", filter=_is_for_programs)
datas = collect_data_files("pressure_mp.engines")
