"""The table of contents of everything that can be run; what each does is decided in the packages, not here."""

import nox

nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "tests"]

CONSTRAINTS = ("-c", "constraints.txt")


def install(session: nox.Session, extras: str, *groups: str) -> None:
    session.install(*CONSTRAINTS, "-e", f".[{extras}]", *(nox.project.dependency_groups(PROJECT, *groups)))


PROJECT = nox.project.load_toml("pyproject.toml")


@nox.session
def qualify(session: nox.Session) -> None:
    """Qualify a model, an endpoint or an image: the embedded model when nothing is named."""
    install(session, "engine,harness")
    session.run("python", "-m", "qualification", "qualify", *session.posargs)


@nox.session
def compare(session: nox.Session) -> None:
    """Measure two subjects by turns and compare them: `-- --a engine,precision=bf16 --b engine,precision=int8`."""
    install(session, "engine,harness")
    session.run("python", "-m", "qualification", "compare-run", *session.posargs)


@nox.session
def verify(session: nox.Session) -> None:
    """Verify a bundle offline: `nox -s verify -- evidence/RUN`; nothing of the engine is installed."""
    session.install(*CONSTRAINTS, "-e", ".")
    session.run("python", "-m", "qualification", "verify", *session.posargs)


@nox.session
def tamper(session: nox.Session) -> None:
    """Tamper with a good bundle in every known way and print what the verifier found; or `-- BUNDLE`, over its files."""
    install(session, "harness")
    session.run("python", "-m", "qualification.tamper", *session.posargs)


@nox.session(name="verify-pythons")
def verify_pythons(session: nox.Session) -> None:
    """Verify the good bundle and every tampered one under each Python version found here; fails unless all write the same bytes."""
    install(session, "harness")
    session.run("python", "-m", "tests.qualification.verify.pythons")


@nox.session(name="audio-review")
def audio_review(session: nox.Session) -> None:
    """Review the stored audio of a bundle and add what is found as a layer: `nox -s audio-review -- evidence/RUN`."""
    install(session, "review")
    session.run("python", "-m", "qualification", "audio-review", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """The default tests: no GPU, no weights but small ones, no network beyond loopback."""
    install(session, "engine,harness,recipe,review", "tests")
    session.run("pytest", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """The tests that take minutes: soak, contract fuzzing, the recipe end to end in its smallest preset."""
    install(session, "engine,harness,recipe,review", "tests")
    session.run("pytest", "-m", "slow", *session.posargs)


@nox.session
def mutation(session: nox.Session) -> None:
    """Mutate modules of the verdict path and run the nearest tests: `nox -s mutation -- verify/plan`; minutes for each module."""
    install(session, "harness", "tests", "mutation")
    session.run("python", "-m", "tests.qualification.mutation", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, types and the direction of imports."""
    install(session, "engine,harness,recipe,review", "tests", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")


@nox.session
def parity(session: nox.Session) -> None:
    """Compare with the official code, which this session installs without its unused dependencies."""
    session.install("-r", "tests/parity/requirements.txt")
    session.install("--no-deps", "qwen-tts==0.1.1", "dashscope==2.0.2")
    session.run("pytest", "-m", "parity", "tests/parity", *session.posargs)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Micro-benchmarks of the frame step and the codec."""
    install(session, "engine,harness", "tests")
    session.run("pytest", "-m", "micro", "--benchmark-enable", *session.posargs)


@nox.session
def image(session: nox.Session) -> None:
    """Build the image of this commit twice, compare, and describe it; needs a Docker engine."""
    install(session, "engine,harness")
    session.run("python", "-m", "qualification.container", "image", "--twice", "--clean", *session.posargs)


@nox.session(name="container-tests")
def container_tests(session: nox.Session) -> None:
    """The container tests on a stand-in image; needs a Docker engine."""
    install(session, "engine,harness", "tests")
    session.run("pytest", "-m", "docker", "tests/qualification/container/test_docker.py", *session.posargs)


@nox.session(name="fleet-tests")
def fleet_tests(session: nox.Session) -> None:
    """The fleet's tests: a Ray cluster in processes of this machine, killed replicas and nodes included."""
    install(session, "engine,fleet", "fleet-tests")
    session.run("pytest", "-m", "not slow", "tests/engine/fleet", *session.posargs)


@nox.session
def recipe(session: nox.Session) -> None:
    """Train the embedded model from nothing: `nox -s recipe -- all`, on a GPU or slowly on a CPU."""
    install(session, "engine,recipe")
    session.run("python", "-m", "recipe", *session.posargs)
