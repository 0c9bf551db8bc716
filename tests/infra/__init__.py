"""The packaged template, the archive, the policies and the tooling; may not start a stack."""
