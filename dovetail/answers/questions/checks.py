"""Whether everything is there that Dovetail needs, and in which versions."""

from dovetail.answers.doctor.text import doctor_text
from dovetail.answers.questions.asking import Answered, Asked, Source, in_one_form, named
from dovetail.answers.questions.versions import versions_of


async def doctor(source: Source, asked: Asked) -> Answered:
    cluster = named(source.settings)
    answer = await source.doctor(preflight=bool(asked.word("preflight")))
    return Answered("Checks", cluster, answer, in_one_form(doctor_text, answer))


async def version(source: Source, asked: Asked) -> Answered:
    try:
        client = await source.temporal()
    except TimeoutError:  # a worker knows the rest
        client = None
    async with source.world() as world:
        kubernetes = await world.inspection.version()
    cluster = source.settings.cluster
    return Answered("Versions", cluster, await versions_of(client, cluster, kubernetes))
