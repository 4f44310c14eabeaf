"""The container's policy as an argument list: what is always on, what is refused, and how the engines differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from hatchway.core.errors import InvalidSetting
from hatchway.core.grants import FileMount
from hatchway.sandboxes.container.extra_args import check_extra_args
from hatchway.sandboxes.container.policy import ContainerPolicy

ALWAYS = [
    "--rm",
    "-i",
    "--pull=never",
    "--name=n",
    "--label=k=v",
    "--network=none",
    "--read-only",
    "--memory=256m",
    "--memory-swap=256m",
    "--cpus=1.0",
    "--pids-limit=128",
    "--user=65534:65534",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
]
TMP = "--tmpfs=/tmp:rw,exec,size=64m,mode=1777"


def args_of(policy: ContainerPolicy) -> list[str]:
    return policy.run_args("n", ["python3", "-"], labels={"k": "v"})


@pytest.mark.parametrize(
    ("engine", "own"),
    [
        ("docker", ["--log-driver=none", "--env=HTTP_PROXY=", "--env=no_proxy=", TMP + ",uid=65534,gid=65534"]),
        ("podman", ["--log-driver=none", "--http-proxy=false", "--read-only-tmpfs=false", TMP]),
        ("nerdctl", ["--log-opt=max-size=1m", "--log-opt=max-file=1", TMP + ",uid=65534,gid=65534"]),
        ("/opt/bin/podman", ["--http-proxy=false"]),
    ],
)
def test_every_engine_gets_the_whole_policy_and_what_it_needs_beside(engine: str, own: list[str]) -> None:
    args = args_of(ContainerPolicy(engine=engine))
    assert args[0] == "run"
    assert [arg for arg in [*ALWAYS, *own] if arg not in args] == []
    assert args[-3:] == ["python:3.12-slim", "python3", "-"]


def test_only_what_was_loosened_is_loose() -> None:
    usual, loose = args_of(ContainerPolicy()), args_of(ContainerPolicy(drop_capabilities=False))
    assert set(usual) - set(loose) == {"--cap-drop=ALL", "--security-opt=no-new-privileges"}
    assert set(loose) <= set(usual)


def test_another_runtime_is_passed_through() -> None:
    assert "--runtime=runsc" in args_of(ContainerPolicy(runtime="runsc"))


def test_a_path_with_commas_and_quotes_is_one_mount(tmp_path: Path) -> None:
    policy = ContainerPolicy(mounts=(FileMount('/a,dst=/etc,"b', "/input/x"),))
    assert '--mount=type=bind,"src=/a,dst=/etc,""b",dst=/input/x,readonly' in args_of(policy)


@pytest.mark.parametrize(
    "image",
    ["", "--privileged", "-v=/:/host", "a b", "a\nb", "python:3.12;rm", "$(id)", "a\0b", "/absolute", "x" * 300],
)
def test_what_is_no_image_name_is_refused(image: str) -> None:
    with pytest.raises(InvalidSetting, match="is not the name of an image"):
        ContainerPolicy(image=image)


@pytest.mark.parametrize(
    "setting",
    [
        {"memory": "1g --privileged"}, {"memory": "lots"}, {"memory": "0"}, {"cpus": "-1"}, {"cpus": "1 2"},
        {"user": "0:0 --privileged"}, {"user": "--privileged"}, {"pids_limit": 0}, {"runtime": "a/b"},
        {"engine": "rkt"}, {"engine": "--host=x"}, {"environment": {"A=B": "c"}}, {"environment": {"A": "\0"}},
    ],
)  # fmt: skip
def test_a_setting_that_is_no_such_setting_is_refused(setting: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting):
        ContainerPolicy(**setting)  # type: ignore


@pytest.mark.parametrize(
    "args",
    [
        ["--hostname=h"], ["--env", "A=B"], ["-e", "A=B"], ["-eA=B"], ["--init"], ["--init", "--shm-size=1m"],
        ["--volume=/data:/data:ro"], ["-v", "named:/data"], ["--mount=type=bind,src=/srv,dst=/srv,readonly"],
        ["--ulimit", "nofile=64"], ["--tmpfs=/scratch:size=1m"], ["--add-host=a:127.0.0.1"],
    ],
)  # fmt: skip
def test_the_hosts_own_word_is_taken(args: list[str]) -> None:
    check_extra_args(args)


@pytest.mark.parametrize(
    "args",
    [
        ["--name=x"], ["--name", "x"], ["--privileged"], ["--privileged=true"], ["--rm=false"], ["--read-only=false"],
        ["--network=host"], ["--network", "host"], ["--net=host"], ["-p80:80"], ["-P"], ["--cap-add=SYS_ADMIN"],
        ["--security-opt=seccomp=unconfined"], ["--pid=host"], ["--ipc=host"], ["--userns=host"], ["--device=/dev/sda"],
        ["--memory=64g"], ["-m", "64g"], ["--memory-swap=-1"], ["--pids-limit=-1"], ["--user=root"], ["-u0"],
        ["--detach"], ["-d"], ["-it"], ["-td"], ["--init", "-dt"], ["--restart=always"], ["--log-driver=json-file"],
        ["--label=hatchway.owner=x"], ["--runtime=kata"], ["--pull=always"], ["--oom-kill-disable"],
        ["--tmpfs=/tmp:size=9g"], ["-v", "/x:/tmp"], ["--mount=type=bind,src=/x,dst=/tmp"], ["--tmpfs", "/tmp/"],
        ["-v", "/var/run/docker.sock:/s"], ["-v/run:/r"], ["--volume=/:/host"], ["-v", "/run/podman:/p:ro"],
        ["--mount=type=bind,src=/var/run/docker.sock,dst=/s"], ["--mount", "type=bind,source=/run,target=/r"],
        ["--mount=type=volume,dst=/r,volume-opt=type=none,volume-opt=o=bind,volume-opt=device=/run"],
        ["--volumes-from=other"], ["--env-host"], ["--cgroup-parent=/"], ["--uts=host"], ["--gpus=all"],
    ],
)  # fmt: skip
def test_what_undoes_the_wall_is_refused(args: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^--|mounts over|engine's socket"):
        check_extra_args(args)
    with pytest.raises(ValueError):
        ContainerPolicy(extra_args=tuple(args))


@pytest.mark.parametrize(
    "args", [["evil-image"], ["--init", "evil-image", "sh"], ["--"], ["-"], ["--env"], ["-e"], [""]]
)
def test_what_would_become_the_image_or_swallow_it_is_refused(args: list[str]) -> None:
    with pytest.raises(ValueError, match="the image"):
        check_extra_args(args)


def test_the_socket_is_found_behind_a_link_and_by_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    (tmp_path / "link").symlink_to("/run")
    with pytest.raises(ValueError, match="engine's socket"):
        check_extra_args([f"--volume={tmp_path}/link:/r"])
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(str(tmp_path / "s"))
        with pytest.raises(ValueError, match="engine's socket"):
            check_extra_args([f"-v{tmp_path}/s:/s"])
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/deep/engine.sock")
    with pytest.raises(ValueError, match="engine's socket"):
        check_extra_args([f"-v={tmp_path}:/s"])
