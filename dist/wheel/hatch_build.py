"""Gives the wheel the tag of the program that it carries."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = os.environ["WHEEL_TAG"]
