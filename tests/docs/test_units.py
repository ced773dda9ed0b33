"""The units of systemd and the manifest of Kubernetes on the page about deployment.

The manifest was validated by hand against the schema of Kubernetes 1.37 (kubernetes-validate, which
takes 100 MB); here is what the two say of this package.
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pressure_mp.executor.program import make_parser

PAGE = Path(__file__).parents[2] / "docs" / "deploying.md"


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.M | re.S).group(1)


@pytest.fixture
def service():
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(block("ini"))
    return unit["Service"]


@pytest.fixture
def pod():
    yaml = pytest.importorskip("yaml")
    deployment = yaml.safe_load(block("yaml"))
    spec, template = deployment["spec"], deployment["spec"]["template"]
    assert spec["selector"]["matchLabels"] == template["metadata"]["labels"]
    return template["spec"]


def understood(command):
    """What the program makes of its command line, which has to be right."""
    program, subcommand, *arguments = command
    assert (Path(program).name, subcommand) == ("pressure-mp", "worker")
    return make_parser("pressure-mp worker").parse_args(arguments)


def test_a_service_gives_its_workers_the_time_that_they_are_promised(service):
    asked = understood(service["ExecStart"].split())
    assert asked.grace < int(service["TimeoutStopSec"])
    assert service["KillMode"] == "mixed"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path, service):
    program = service["ExecStart"].split()[0]
    unit = tmp_path / "thumbnails.service"
    unit.write_text(block("ini").replace(program, shutil.which("true")))
    run = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_pod_gives_its_workers_the_time_that_they_are_promised(pod):
    (container,) = pod["containers"]
    asked = understood(container["command"])
    assert asked.grace < pod["terminationGracePeriodSeconds"]
    assert str(asked.health_file) in container["livenessProbe"]["exec"]["command"][-1]
