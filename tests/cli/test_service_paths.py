"""The paths of the installed service: its configuration and its data imply each other."""

from argparse import Namespace
from pathlib import Path

import pytest

from medamad.cli import main
from medamad.cli.exit_statuses import NOT_RUNNING_STATUS
from medamad.cli.support import read_config
from medamad.config.schema import ConfigError
from medamad.daemon.service_paths import SERVICE_PATHS, ServicePaths
from medamad.storage.environment.environment import open_environment


@pytest.fixture
def service(tmp_path: Path) -> ServicePaths:
    """A service whose folder of data is a link, as systemd makes it; it holds an empty store."""
    paths = ServicePaths(tmp_path / "etc" / "medamad.toml", tmp_path / "var" / "medamad")
    for folder in (paths.config.parent, paths.data.parent):
        folder.mkdir()
    private = tmp_path / "private" / "medamad"
    open_environment(private, 16 << 20).close()
    paths.data.symlink_to(private)
    paths.config.write_text('[store]\nmin_free_disk = "1000 TiB"\n', "utf-8")
    return paths


def settled(service: ServicePaths, *, state: str = "", **given: Path) -> tuple[Path | None, Path]:
    """Return the configuration and the data directory that a command uses."""
    environ = {"STATE_DIRECTORY": state} if state else {}
    paths: dict[str, Path | None] = {"config": None, "data": None, **given}
    arguments = Namespace(**paths, service_paths=service)
    config = read_config(arguments, environ)
    assert arguments.config == config.file
    return config.file, config.data_dir(environ)


def test_the_defaults_are_those_of_the_unit() -> None:
    assert SERVICE_PATHS.config == Path("/etc/medamad/medamad.toml")
    assert SERVICE_PATHS.data == Path("/var/lib/medamad")


def test_the_services_data_imply_its_configuration(service: ServicePaths) -> None:
    assert settled(service, data=service.data) == (service.config, service.data)
    private = service.data.resolve()
    assert settled(service, data=private) == (service.config, private)
    assert settled(service, data=private / ".." / "medamad")[0] == service.config
    service.config.unlink()
    assert settled(service, data=service.data) == (None, service.data)


def test_the_services_configuration_implies_its_data(service: ServicePaths) -> None:
    assert settled(service, config=service.config) == (service.config, service.data)
    linked = service.config.with_name("link.toml")
    linked.symlink_to(service.config)
    assert settled(service, config=linked) == (linked, service.data)
    service.data.unlink()
    nowhere = (service.config, Path("medamad-data").absolute())
    assert settled(service, config=service.config) == nowhere


def test_an_explicit_data_directory_wins(service: ServicePaths, tmp_path: Path) -> None:
    other, state = tmp_path / "other", tmp_path / "state"
    assert settled(service, config=service.config, data=other) == (service.config, other)
    assert settled(service, config=service.config, state=str(state)) == (service.config, state)
    service.config.write_text('[server]\ndata_dir = "elsewhere"\n', "utf-8")
    elsewhere = service.config.with_name("elsewhere")
    assert settled(service, config=service.config) == (service.config, elsewhere)
    assert settled(service, data=service.data) == (service.config, service.data)


def test_other_paths_do_not_imply_the_service(service: ServicePaths, tmp_path: Path) -> None:
    other, mine = tmp_path / "other", tmp_path / "mine.toml"
    mine.touch()
    here = Path("medamad-data").absolute()
    assert settled(service) == (None, here)
    assert settled(service, data=other) == (None, other)
    assert settled(service, config=mine) == (mine, here)
    assert settled(service, config=mine, data=service.data) == (mine, service.data)


def test_an_invalid_configuration_of_the_service_is_reported(
    service: ServicePaths, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = "server.speed: unknown key"
    service.config.write_text("[server]\nspeed = 80\n", "utf-8")
    for given in ({"data": service.data}, {"config": service.config}):
        assert settled(service, **given) == (service.config, service.data)
        assert capsys.readouterr().err == (
            f"medamad: {service.config}: {wrong}; continuing without this file, on {service.data}\n"
        )
        paths: dict[str, Path | None] = {"config": None, "data": None, **given}
        with pytest.raises(ConfigError, match=wrong):
            read_config(Namespace(**paths, service_paths=service), {}, by_file=True)


def test_an_invalid_configuration_still_names_the_data_directory(
    service: ServicePaths, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.toml"
    for file in (service.config, mine):
        file.write_text('[server]\nspeed = 80\ndata_dir = "elsewhere"\n', "utf-8")
        assert settled(service, config=file) == (file, file.with_name("elsewhere"))


@pytest.mark.parametrize("text", ["[server]\ndata_dir = 7\n", "[", "[server]\n[server]\n"])
def test_a_configuration_with_an_unreadable_data_directory_is_an_error(
    service: ServicePaths, tmp_path: Path, text: str
) -> None:
    mine = tmp_path / "mine.toml"
    for file in (service.config, mine):
        file.write_text(text, "utf-8")
        with pytest.raises(ConfigError):
            settled(service, config=file)
        assert settled(service, config=file, data=tmp_path) == (file, tmp_path)
    mine.write_text("[server]\nspeed = 80\n", "utf-8")
    with pytest.raises(ConfigError):
        settled(service, config=mine)


def test_commands_use_both_paths(
    service: ServicePaths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = ["backup", str(tmp_path / "backup")]
    for given in (["--data", str(service.data)], ["--config", str(service.config)]):
        assert main([*backup, *given], service) == 1
        assert "of the disk are free" in capsys.readouterr().err
    assert main(["check", "--config", str(service.config)], service) == 0
    assert capsys.readouterr().out.startswith(f"{service.data}/")
    assert main(["status", "--config", str(service.config)], service) == NOT_RUNNING_STATUS
    assert capsys.readouterr().err == f"medamad: {service.data}: no daemon runs on it\n"


@pytest.mark.parametrize(("command", "is_reported"), [("backup", True), ("run", False)])
def test_the_help_mentions_the_paths(
    capsys: pytest.CaptureFixture[str], command: str, is_reported: bool
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "/etc/medamad/medamad.toml, and --data /var/lib/medamad each stand" in printed
    ) == is_reported


def test_status_finds_the_service_by_itself(
    service: ServicePaths,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["status"], service) == NOT_RUNNING_STATUS
    assert capsys.readouterr().err == f"medamad: {service.data}: no daemon runs on it\n"
    here = tmp_path / "medamad-data"
    here.mkdir()
    assert main(["status"], service) == NOT_RUNNING_STATUS
    assert capsys.readouterr().err == f"medamad: {here}: no daemon runs on it\n"
