"""Where an action is rehearsed before there is one."""

import os

from .channel import PipeChannel


class Stage:
    """A pipe in which one and the same small action is ordered, and tells an end that the host never hears."""

    ORDER = (
        b'{"type":"execute","code":"await warm(1, 2)","inputs":{"n":[1.5,"a",null]},'
        b'"functions":[{"name":"warm","is_async":true,"stub":""}],"stub_code":null,"env_vars":{},'
        b'"limits":{"value_bytes":1000,"memory_bytes":%d,"open_files":%d,"file_bytes":%d,"processes":1,'
        b'"display_bytes":1000},"is_session":false,"seed":"00","clock":[]}\n' % (1 << 60, 1 << 60, 1 << 60)
    )

    def __init__(self, read_fd, write_fd):
        self._read_fd, self._write_fd = read_fd, write_fd
        self.channel = _StageChannel(read_fd, write_fd)

    def order(self):
        """Put the order in."""
        os.write(self._write_fd, self.ORDER)

    def heard(self):
        """What was told last."""
        return os.read(self._read_fd, 1 << 12)


class _StageChannel(PipeChannel):
    """Answers calls itself."""

    def send(self, data):
        if data.startswith(b'{"type":"function_call","call_id":"'):
            data = b'{"type":"result","call_id":"%s","value":3}\n' % data.split(b'"', 8)[7]
        super().send(data)
