"""One page that tells what runs have shown, as HTML or as Markdown."""

from lengthwise.reporting.report.build import build, check
from lengthwise.reporting.report.html import html_page
from lengthwise.reporting.report.markdown import write_markdown
from lengthwise.reporting.report.parts import Report

__all__ = ["Report", "build", "check", "html_page", "write_markdown"]
