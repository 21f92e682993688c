"""A real SMTP server (aiosmtpd) that writes each message to a file. Usage: smtp.py PORT FILE"""
import sys
import time

from aiosmtpd.controller import Controller


class Keep:
    async def handle_DATA(self, server, session, envelope):
        with open(sys.argv[2], "ab") as out:
            out.write(envelope.content + b"\n")
        return "250 kept"


Controller(Keep(), hostname="127.0.0.1", port=int(sys.argv[1])).start()
while True:
    time.sleep(60)
