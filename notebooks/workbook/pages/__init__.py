"""What a page shows of a run, a request, a route or a talk, each as stable text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from workbook.pages.attempts_table import deciding as deciding
    from workbook.pages.compose import composed as composed
    from workbook.pages.continuations import talk as talk
    from workbook.pages.decision_replies import CONTEXT as CONTEXT
    from workbook.pages.decision_run import LOOK as LOOK
    from workbook.pages.decision_run import QUESTION as QUESTION
    from workbook.pages.decision_run import repairing as repairing
    from workbook.pages.decision_trace import cancel_in_stall as cancel_in_stall
    from workbook.pages.decision_trace import observe as observe
    from workbook.pages.faults_by_check import one_fault_each as one_fault_each
    from workbook.pages.input_rules import objection as objection
    from workbook.pages.openings import complete as complete
    from workbook.pages.openings import complete_at as complete_at
    from workbook.pages.project import Project as Project
    from workbook.pages.recordings import diagnoses as diagnoses
    from workbook.pages.recordings import recording as recording
    from workbook.pages.rehearsal import rehearse as rehearse
    from workbook.pages.routes import Switchboard as Switchboard
    from workbook.pages.routes import entries as entries
    from workbook.pages.routes import new_ledger as new_ledger
    from workbook.pages.routes import over_sockets as over_sockets
    from workbook.pages.routes import plain_model as plain_model
    from workbook.pages.routes import spend_in_processes as spend_in_processes
    from workbook.pages.routes import spent_elsewhere as spent_elsewhere
    from workbook.pages.seams import forgotten as forgotten
    from workbook.pages.seams import repair as repair
    from workbook.pages.simulation import Stage as Stage
    from workbook.pages.simulation import paced as paced
    from workbook.pages.simulation import perform as perform
    from workbook.pages.small_loop import RecordedModel as RecordedModel
    from workbook.pages.small_loop import ScriptedModel as ScriptedModel
    from workbook.pages.small_loop import run as run
    from workbook.pages.small_loop import said as said
    from workbook.pages.small_loop import wants as wants
    from workbook.pages.stopping import acts_first as acts_first
    from workbook.pages.stopping import ignores_stops as ignores_stops
    from workbook.pages.stopping import stop_process as stop_process
    from workbook.pages.stopping import stop_reader as stop_reader
    from workbook.pages.stopping import stop_thread as stop_thread
    from workbook.pages.symptoms import symptom as symptom
    from workbook.pages.symptoms import symptom_table as symptom_table
    from workbook.pages.two_screens import held as held
    from workbook.pages.two_screens import show as show
    from workbook.pages.two_screens import spoken as spoken

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".attempts_table": ("deciding",),
        ".compose": ("composed",),
        ".continuations": ("talk",),
        ".decision_replies": ("CONTEXT",),
        ".decision_run": ("LOOK", "QUESTION", "repairing"),
        ".decision_trace": ("cancel_in_stall", "observe"),
        ".input_rules": ("objection",),
        ".faults_by_check": ("one_fault_each",),
        ".openings": ("complete", "complete_at"),
        ".project": ("Project",),
        ".recordings": ("diagnoses", "recording"),
        ".rehearsal": ("rehearse",),
        ".routes": (
            "Switchboard",
            "entries",
            "new_ledger",
            "over_sockets",
            "plain_model",
            "spend_in_processes",
            "spent_elsewhere",
        ),
        ".seams": ("forgotten", "repair"),
        ".simulation": ("Stage", "paced", "perform"),
        ".small_loop": ("RecordedModel", "ScriptedModel", "run", "said", "wants"),
        ".stopping": ("acts_first", "ignores_stops", "stop_process", "stop_reader", "stop_thread"),
        ".symptoms": ("symptom", "symptom_table"),
        ".two_screens": ("held", "show", "spoken"),
    },
)
