#!/usr/bin/python
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs stacklift on a host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: run
short_description: Moves running Compose stacks into Portainer
description:
  - Runs C(stacklift) on the host and reads its JSON reports.
  - With O(command=adopt), it plans every stack first. If one of them would be refused, nothing is adopted on this host.
    Then it adopts one stack after the other, and stops at the first failure.
options:
  command:
    description:
      - V(plan) shows what V(adopt) would do. V(list) shows the stacks of the host. Both only read.
    type: str
    choices: [plan, adopt, list]
    default: plan
  stacks:
    description:
      - The stacks, in the order in which to adopt them.
      - If the list is empty, the module uses every stack with a Compose file, in the order of C(stacklift list).
    type: list
    elements: str
    default: []
  exclude:
    description: Stacks to leave as they are, if O(stacks) is empty.
    type: list
    elements: str
    default: []
  accept_losses:
    description: Adopt a stack even if its plan lists losses.
    type: bool
    default: false
  access:
    description:
      - Who may use the stacks in Portainer besides administrators, as in C(--access), such as V(team:ops).
      - If the list is empty, a new stack is for administrators only, and an update keeps what the stack has.
    type: list
    elements: str
    default: []
  arguments:
    description: More arguments of C(stacklift adopt), such as C(--pull). Not for secrets.
    type: list
    elements: str
    default: []
  program:
    description: The program on the host.
    type: path
    default: stacklift
  api_key_file:
    description: The file on the host that contains the API key of a Portainer administrator.
    type: path
    default: /etc/stacklift.key
  settings_directory:
    description:
      - A directory that contains a settings file C(stacklift.toml), which is used instead of the user settings.
      - Its settings take precedence over those in C(/etc/stacklift.toml).
    type: path
attributes:
  check_mode:
    description: Plans, and changes nothing. RV(ignore:changed) says whether V(adopt) would change something.
    support: full
  diff_mode:
    description:
      - Shows how the Compose file in Portainer differs from the one on the host. The values of variables are masked, also
        those in the Compose file. Other values in the Compose file are not.
    support: full
extends_documentation_fragment: []
author:
  - The stacklift authors (@stacklift)
"""

EXAMPLES = r"""
- name: Show what would happen to every stack
  stacklift.stacks.run:
    command: plan

- name: Adopt two stacks
  stacklift.stacks.run:
    command: adopt
    stacks: [books, wiki]
"""

RETURN = r"""
summary:
  description: What was or would be done, and what happens to each service, one line each.
  returned: always
  type: list
  elements: str
stacks:
  description:
    - The stacks in order. RV(stacks[].name) is the name, RV(stacks[].plan) the report of C(stacklift adopt --dry-run),
      and RV(stacks[].report) that of C(stacklift adopt), for the stacks that it ran for.
    - With O(command=list), the stacks as in C(stacklift list --output json).
  returned: always
  type: list
  elements: dict
would_change:
  description: The stacks that C(stacklift adopt) would change.
  returned: with O(command=plan), and with O(command=adopt) after all stacks were planned
  type: list
  elements: str
state:
  description: The state of the stack that failed.
  returned: on a failure that reports it
  type: str
"""

import json
import shlex

from ansible.module_utils.basic import AnsibleModule

# The outcomes of an adoption that sent nothing.
NOTHING_SENT = ("not-sent", "nothing-to-do")


class Stacklift:
    """The program on this host, and the result so far."""

    def __init__(self, module):
        self.module = module
        given = module.params
        self.program = module.get_bin_path(given["program"], required=True, opt_dirs=["/usr/local/bin"])
        # The key is never an argument, and its variable holds only a path.
        self.environment = {"STACKMGR_API_KEY_FILE": given["api_key_file"]}
        if given["settings_directory"]:
            self.environment["XDG_CONFIG_HOME"] = given["settings_directory"]
        self.arguments = [word for who in given["access"] for word in ("--access", who)] + given["arguments"]
        self.warned = set()
        self.result = {"changed": False, "summary": [], "stacks": []}

    def run(self, arguments):
        return self.module.run_command([self.program] + arguments, environ_update=self.environment)

    def report(self, arguments):
        """The exit status, the JSON report or None, and what was written to standard error, without the warnings."""
        status, output, errors = self.run(arguments + ["--output", "json"])
        warnings = [line for line in errors.splitlines() if line.startswith("warning: ")]
        errors = "\n".join(line for line in errors.splitlines() if line not in warnings)
        for warning in warnings:
            self.warn(warning[len("warning: ") :])
        try:
            return status, json.loads(output), errors.strip()
        except ValueError:
            return status, None, errors.strip()

    def warn(self, warning):
        """Shows a warning once: every command prints those about the settings."""
        if warning not in self.warned:
            self.warned.add(warning)
            self.module.warn(warning)

    def fail(self, message, **more):
        self.result.update(more)
        self.module.fail_json(msg=message, **self.result)

    def listed(self):
        """The report of `list`."""
        status, listed, errors = self.report(["list"])
        if status != 0 or listed is None:
            self.fail("failed to list the stacks: %s" % errors)
        for warning in listed["warnings"]:
            self.warn(warning)
        return listed

    def wanted(self):
        """The arguments that name each stack."""
        given = self.module.params
        if given["stacks"]:
            return [(name, [name]) for name in given["stacks"]]
        listed = self.listed()
        if not listed.get("portainer") or not listed.get("containers_known"):
            self.fail("the stacks of this host are unknown: %s" % "; ".join(listed["warnings"]))
        wanted = []
        for one in listed["stacks"]:
            if one["name"] in given["exclude"] or one["adopt"]["readiness"] == "no-file":
                continue
            # The containers of a directory can have the name of another project.
            wanted.append((one["name"], [one["name"]] + (["--dir", one["dir"]] if one.get("dir") else [])))
        return wanted

    def plan(self, name, words):
        """Plans a stack. Returns why it would be refused."""
        status, plan, errors = self.report(["adopt", "--dry-run"] + words + self.arguments)
        # The status is 1 if the stack cannot be adopted: the plan says why.
        if status not in (0, 1) or plan is None or not plan.get("adopt"):
            self.fail("failed to plan %s: %s. No stack of this host was adopted by this run." % (name, errors))
        adopt = plan["adopt"]
        # Without a request, a blocker says why the plan could not be made.
        request = (adopt["request"] or {"kind": "unknown"})["kind"]
        self.result["stacks"].append({"name": name, "plan": plan})
        self.result["summary"].append("%s: %s" % (name, described(request, adopt)))
        for service in adopt["services"]:
            fate = service["fate"]
            reason = ": %s" % fate["reason"] if fate.get("reason") else ""
            self.result["summary"].append("  %s: %s%s" % (service["service"], fate["kind"], reason))
        losses = ["loss: %s" % told(loss) for loss in adopt["losses"]]
        changes = ["change: %s" % told(change) for change in adopt["changes"]]
        refusals = [
            one["message"] + (" (hint: %s)" % one["hint"] if one["hint"] else "") for one in adopt["blockers"]
        ]
        self.result["summary"].extend("  %s" % one for one in losses + changes)
        self.result["summary"].extend("  blocked: %s" % refusal for refusal in refusals)
        if not adopt["losses_known"]:
            losses.append("its losses are unknown")
        if adopt["readiness"] == "edited" and "--overwrite" not in self.module.params["arguments"]:
            refusals.append("it was edited in Portainer (hint: stacklift export %s)" % name)
        changes_something = request != "nothing" or adopt.get("access")
        if losses and changes_something and not self.module.params["accept_losses"]:
            refusals.append("%s (hint: set accept_losses to adopt it anyway)" % "; ".join(losses))
        if changes_something or plan.get("unanswered"):
            self.result["would_change"].append(name)
            self.difference(adopt.get("diff_command"))
        return refusals

    def difference(self, command):
        """Adds the changes of the Compose file to the result, in diff mode."""
        if not self.module._diff or not command:
            return
        status, patch, errors = self.run(shlex.split(command)[1:])
        if status != 0:
            self.warn("failed to show the changes: %s" % errors.strip())
        elif patch:
            self.result.setdefault("diff", []).append({"prepared": patch})

    def adopt(self, stack, words):
        """Adopts a stack."""
        name = stack["name"]
        status, report, errors = self.report(["adopt", "--yes"] + words + self.arguments)
        if report is None:
            # Without a report it sent nothing, unless it was killed.
            self.result["changed"] = self.result["changed"] or status not in (1, 2)
            self.fail("failed to adopt %s: %s" % (name, errors or "it ended with status %s" % status))
        stack["report"] = report
        outcome = report["outcome"]
        if outcome == "unchanged":
            # No container was changed, but the Portainer stack may have been.
            self.result["changed"] = self.result["changed"] or bool(report.get("portainer_stack"))
        elif outcome not in NOTHING_SENT:
            self.result["changed"] = True
        self.result["summary"].append("%s: %s" % (name, outcome))
        if status != 0:
            self.fail("failed to adopt %s: %s" % (name, errors or report.get("error")), state=report.get("state"))


def described(request, adopt):
    """What a plan would do, in a few words."""
    if adopt["blockers"]:
        return "blocked"
    if request == "nothing":
        return "nothing to do"
    return "to adopt (%s)" % request


def told(loss):
    """What a plan says about a loss or a change, with what it belongs to."""
    subject = loss.get("subject")
    return "%s: %s" % (subject, loss["message"]) if subject else loss["message"]


def main():
    module = AnsibleModule(
        argument_spec={
            "command": {"type": "str", "choices": ["plan", "adopt", "list"], "default": "plan"},
            "stacks": {"type": "list", "elements": "str", "default": []},
            "exclude": {"type": "list", "elements": "str", "default": []},
            "accept_losses": {"type": "bool", "default": False},
            "access": {"type": "list", "elements": "str", "default": []},
            "arguments": {"type": "list", "elements": "str", "default": []},
            "program": {"type": "path", "default": "stacklift"},
            # The path is no secret.
            "api_key_file": {"type": "path", "default": "/etc/stacklift.key", "no_log": False},
            "settings_directory": {"type": "path"},
        },
        supports_check_mode=True,
    )
    stacklift = Stacklift(module)
    result = stacklift.result
    command = module.params["command"]
    if command == "list":
        result["stacks"] = stacklift.listed()["stacks"]
        result["summary"] = ["%s: %s, %s" % (one["name"], one["state"], one["adopt"]["readiness"]) for one in result["stacks"]]
        module.exit_json(**result)

    wanted = stacklift.wanted()
    result["would_change"] = []
    refusals = []
    for name, words in wanted:
        refusals.extend("%s: %s" % (name, refusal) for refusal in stacklift.plan(name, words))
    if command == "plan":
        module.exit_json(**result)
    if refusals:
        stacklift.fail("refused: %s. No stack of this host was adopted by this run." % "; ".join(refusals))
    if module.check_mode:
        result["changed"] = bool(result["would_change"])
        module.exit_json(**result)
    for stack, (name, words) in zip(result["stacks"], wanted):
        if name in result["would_change"]:
            stacklift.adopt(stack, words)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
