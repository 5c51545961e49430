#!/bin/bash
# {{ title }} on one machine: {{ ranks }} training processes{{ " and " ~ servers | length ~ " servers" if servers }}.
# Filled in by `skillpress run --dry-run --launch machine`. It was run with small models on CPUs, never on GPUs.
{% include "one_node.sh" %}
