"""What the views of the page ask: a file for each kind, which :data:`KINDS` registers.

Adding one: a subclass of :class:`~tcpscape.web.questions.base.Question` in its own file and a line here. Its options are fields of the class, as
text or plain values as the page sends them; `answer` runs in a thread of its own.
"""

from tcpscape.web.questions.answer import Answer
from tcpscape.web.questions.base import Question
from tcpscape.web.questions.check import Check
from tcpscape.web.questions.curve import Curve
from tcpscape.web.questions.inside import Detail, Inside
from tcpscape.web.questions.kept import KeptResults
from tcpscape.web.questions.map import Map
from tcpscape.web.questions.measure import Measure
from tcpscape.web.questions.mix import Mix

KINDS: dict[str, type[Question]] = {
    kind.kind: kind for kind in (Answer, Curve, Map, Inside, Detail, Mix, Measure, KeptResults, Check)
}
"""Every kind of question by its name."""
