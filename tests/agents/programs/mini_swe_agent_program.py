from __future__ import annotations

import os

os.environ["MSWEA_SILENT_STARTUP"] = "1"

from asked import QUESTION
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

model = LitellmModel(model_name="openai/policy", cost_tracking="ignore_errors")
templates = {"system_template": "You have a shell.", "instance_template": "{{task}}"}
print(DefaultAgent(model, LocalEnvironment(), **templates).run(QUESTION))
