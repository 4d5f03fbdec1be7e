"""Figures, tables and sentences for people."""
