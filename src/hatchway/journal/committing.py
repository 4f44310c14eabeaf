"""One transaction for the changes that came together; one that fails spoils it for itself alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hatchway.journal.database import Database
from hatchway.journal.jobs import Job


def commit(db: Database, jobs: Sequence[Job]) -> bool:
    """Commit together, or each on its own when one of them spoils it for all; False when the database itself failed.

    Nobody waits for a database twice: when it cannot be had, all of them fail at once.
    """
    jobs = [job for job in jobs if not job.is_cut_off()]
    try:
        together(db, jobs)
    except Spoilt as spoilt:
        if len(jobs) == 1:
            jobs[0].fail(spoilt.cause)
            return True
        for at, job in enumerate(jobs):
            if not commit(db, [job]):
                for other in jobs[at + 1 :]:
                    other.fail(job.error or spoilt.cause)
                return False
    except Exception as e:
        for job in jobs:
            job.fail(e)
        return False
    return True


class Spoilt(Exception):
    """A change failed; nothing of its transaction is stored."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def together(db: Database, jobs: Sequence[Job]) -> None:
    """Commit them in one transaction.

    Raises:
        Spoilt: One of them failed.
        Exception: The database did.
    """
    db.begin()
    try:
        for job in jobs:
            try:
                job.change(db)
            except Exception as e:
                raise Spoilt(e) from e
        db.commit()
    except BaseException:
        with suppress(Exception):  # the connection is gone, and its transaction with it
            db.rollback()
        raise
