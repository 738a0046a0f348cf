"""What a sandbox promises of sessions: variables stay, and where they cannot, it says so."""

from __future__ import annotations

from gem.errors import SandboxError
from gem.sandbox import Sandbox, Status
from gem.testing.check_sandbox import check
from gem.testing.checks_runs import expect
from gem.testing.lab import Broken


@check("session-state", "Variables and imports stay from cell to cell; a last expression is shown.")
def state(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        expect(session.run("import math\nx = math.floor(2.5)"), Status.OK, stdout="")
        expect(session.run("x += 1; x"), Status.OK, stdout="3\n")
        expect(session.run("input()"), Status.ERROR)
        expect(session.run("print(x)"), Status.OK, stdout="3\n", stderr="")


@check("sessions-apart", "Two sessions share nothing.")
def apart(sandbox: Sandbox) -> None:
    with sandbox.session() as one, sandbox.session() as other:
        one.run("x = 1")
        expect(other.run("x"), Status.ERROR, state_lost=False)
        expect(one.run("x"), Status.OK, stdout="1\n")


@check("session-exit", "sys.exit() ends a cell, not the session.")
def exits(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        session.run("x = 5")
        expect(session.run("import sys; sys.exit(3)"), Status.ERROR, exit_code=3, state_lost=False)
        expect(session.run("x"), Status.OK, stdout="5\n")


@check("session-interrupt", "A cell that overruns is interrupted, and the variables stay.")
def interrupt(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        session.run("x = 5")
        code = "print('before')\nwhile True: pass"
        expect(session.run(code, wall_s=0.5), Status.TIMEOUT, stdout="before\n", state_lost=False)
        expect(session.run("x"), Status.OK, stdout="5\n")


@check(
    "session-lost",
    "Where a cell cannot be interrupted the result says that the state is lost, and the next starts anew.",
)
def lost(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        session.run("x = 5")
        code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
        expect(session.run(code, wall_s=0.5), Status.TIMEOUT, state_lost=True)
        expect(session.run("'x' in globals()"), Status.OK, stdout="False\n", state_lost=False)


@check("session-closed", "A closed session raises SandboxError.")
def closed(sandbox: Sandbox) -> None:
    session = sandbox.session()
    session.run("1")
    session.close()
    session.close()
    try:
        session.run("1")
    except SandboxError:
        return
    raise Broken("a closed session ran a cell")


CHECKS = (state, apart, exits, interrupt, lost, closed)
