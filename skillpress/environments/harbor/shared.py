"""The resources that Harbor's tasks share in a process, and how an episode starts in its root."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from weakref import WeakValueDictionary

from skillpress.core.errors import ParamsError
from skillpress.environments.harbor.dockerfile import PATH, archive
from skillpress.environments.harbor.parameters import BUILD, HarborParameters
from skillpress.environments.harbor.roots import Roots, image_of
from skillpress.environments.harbor.task_files import HarborStep
from skillpress.environments.harbor.tasks import playable
from skillpress.environments.harbor.trial import InsideRoot, TaskRun
from skillpress.environments.program.shared import SharedEndpoint, variables_passed
from skillpress.environments.program.verifier import Played, Verdict
from skillpress.rollouts.programs.isolated import CERTIFICATES, DISK_MB, FILES, HOME, Isolated
from skillpress.rollouts.programs.isolated_process import FORWARDER
from skillpress.rollouts.programs.launch import Commands, Running
from skillpress.rollouts.programs.mounting import MountedSkills
from skillpress.rollouts.programs.session import Ended
from skillpress.rollouts.programs.setting import AgentSetting, filled
from skillpress.rollouts.programs.start import Start
from skillpress.rollouts.sandbox.isolation import Inside, start_isolated
from skillpress.rollouts.sandbox.limits import MOST_WAITED
from skillpress.rollouts.sandbox.sandbox import check_isolation
from skillpress.rollouts.sandbox.spawner import spawner

SCRIPT, HOSTS = "/run/inside.py", "/etc/hosts"
PASSWD = {"/etc/passwd": b"root:x:0:0::/root:/bin/bash\n", "/etc/group": b"root:x:0:\n"}
"""Lists the only user inside, if the root has no such file."""
FOLDERS = ("/root", "/logs/agent", "/logs/verifier", "/logs/artifacts")
"""Folders that exist in every task's root."""
START_SECONDS = 120.0
"""How long an episode may take to start, not counting a build."""


class SharedTrials(SharedEndpoint):
    """See ``section.SharedEnvironments``."""

    def __init__(self, section: HarborParameters) -> None:
        """Raises:
        UserError: a task, the root, the agent or a file that the section names is wrong or missing.
        """
        check_isolation("bubblewrap")
        tasks = playable(section)
        roots = Roots(section.root)
        passed, copied = variables_passed(section), section.copied
        super().__init__(section, isolated=True)
        launcher = TaskRuns(section, roots, self._socket, passed=passed, copied=copied, skills=self._skills)
        self._launcher, self._verify = launcher, launcher.judge
        settings = [task.settings for task in tasks]
        played = max(task.all_seconds(section.seconds) for task in tasks)
        tested = max(task.test_seconds(task.steps[-1]) for task in tasks)
        building = max(each.environment.build_timeout_sec for each in settings)
        self.seconds = (1 + MOST_WAITED) * (played + tested) + building + START_SECONDS


class TaskRuns:
    """A ``Launcher`` of agents in the roots of their tasks, and the verifier of what they leave."""

    def __init__(
        self,
        section: HarborParameters,
        roots: Roots,
        endpoint: Path,
        *,
        passed: Mapping[str, str],
        copied: Mapping[str, Path],
        skills: MountedSkills | None,
    ) -> None:
        """Args:
        endpoint: the endpoint's socket.
        passed: variables of this process that agents get.
        copied: maps names in HOME to what is copied there. skills: skills that agents find; None for none."""
        self._section, self._roots, self._endpoint = section, roots, endpoint
        self._passed, self._copied, self._skills = passed, copied, skills
        agent = section.agent_file()
        self._setting = AgentSetting(agent.variables, agent.files) if agent else None
        command = agent.run if agent else section.run if isinstance(section.run, list) else [sys.executable]
        self._command = [f"{HOME}/{part}" if part in copied else part for part in command]
        self._trials: WeakValueDictionary[Path, TaskRun] = WeakValueDictionary()

    def start(self, start: Start, ended: Callable[[Ended], None]) -> Running:
        """See ``Launcher``."""
        task = self._section.task_of(str(start.task["id"]))
        root = self._roots.of(task)
        task = replace(task, image=image_of(root) if self._section.root == BUILD else {})
        copied = task.dockerfile.copied if self._section.replays_copies else ()
        files = archive(copied, task.context, [*FOLDERS, task.place])
        ours, theirs = socket.socketpair()
        made = TaskRun(
            task=task,
            start=start,
            inside=InsideRoot(ours),
            files=files,
            solve=self._section.solves,
            seconds=self._section.seconds,
            arguments=lambda step: self._arguments(start, step),
            ended=ended,
        )
        memory = task.settings.environment.memory_mb or self._section.memory_mb
        limits = replace(Isolated.limited(memory), disk_mb=task.settings.environment.storage_mb or DISK_MB)
        isolated = InRoot(
            self._endpoint,
            self._command,
            limits=limits,
            passed=self._passed,
            root=root,
            path=task.variables().get("PATH", PATH),
            connection=theirs,
            begin=made.begin,
        )
        commands = Commands(self._command, isolated, self._copied, skills=self._skills, setting=self._setting)
        with theirs:
            made.process = commands.start(start, made.gone)
        self._trials[start.folder] = made
        return made

    def _arguments(self, start: Start, step: HarborStep) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command's arguments in a step, and the variable that has its instruction."""
        start = replace(start, task={**start.task, "prompt": step.instruction})
        fills, given = start.fills(HOME), self._command[1:]
        if self._setting:
            arguments = [filled(part, fills) for part in given]
        else:
            arguments = [part.replace("{folder}", HOME) for part in given]
        return arguments, {"SKILLPRESS_TASK": start.variables()["SKILLPRESS_TASK"]}

    def judge(self, played: Played) -> Verdict:
        """A ``Verify``: the tests' verdict on an episode that was not stopped."""
        return self._trials[played.folder].judge()

    def close(self) -> None:
        """Do nothing: every resource ends with its episode."""


@dataclass(frozen=True)
class InRoot(Isolated):
    """Starts what carries out requests (``inside.py``) in a task's root."""

    root: Path | None = None
    """The unpacked root; None for this machine's ``/usr``."""
    path: str = PATH
    """The container's PATH."""
    connection: socket.socket = field(kw_only=True)
    """The end of a socket that is its standard input."""
    begin: Callable[[Sequence[str]], None] = field(kw_only=True)
    """Called with the agent's command when it was started."""

    def _process(
        self,
        arguments: Sequence[str],
        inside: Inside,
        *,
        folder: Path,
        output: int,
        descriptors: Sequence[int],
    ) -> subprocess.Popen[bytes]:
        """See ``Isolated``."""
        program = self._program
        own = Path(program).parent
        if self.root is not None and program.startswith("/usr/") and not (self.root / program[1:]).exists():
            raise ParamsError(
                f"environment.run: {program} is in /usr, which the root {self.root} hides; use an "
                "installation outside /usr, or add the program to the root"
            )
        files = {
            FORWARDER: inside.files[FORWARDER],
            SCRIPT: Path(__file__).with_name("inside.py").read_bytes(),
        }
        binds = [bind for bind in inside.binds if self.root is None or bind.place != CERTIFICATES]
        inside = replace(
            inside,
            files={**FILES, **PASSWD, **files} if self.root is None else {HOSTS: FILES[HOSTS], **files},
            binds=binds,
            variables={**inside.variables, "PATH": f"{self.path}:{own}" if own.is_absolute() else self.path},
            root=self.root and spawner().shown(self.root.resolve()),
            writable=True,
            user=0,
            place="/",
        )
        python = [sys.executable, "-I"]
        command = [*python, *self._beside_forwarder([*python, SCRIPT])]
        process = start_isolated(command, inside, descriptors, output, stdin=self.connection.fileno())
        self.begin([program, *arguments])
        return process
