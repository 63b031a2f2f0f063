"""Ask: the console's model for programs that ask by the Model Context Protocol (MCP). Nothing here writes.

- `replies`: the answers, one struct per tool, with units in the names of fields
- `tools`: the questions, answered out of the records of console, report and sizing
- `data`: texts of queues, jobs and people as data, and results that are small
- `pages`: search in the documentation
- `server`: the library's server, over standard input or HTTP; the only module that imports `mcp`
"""
