"""Takes what an agent sends and prints a line of it: receiver.py ADDRESS PORT. METHOD PATH BYTES, and whether the token is s3cret."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Receiver(BaseHTTPRequestHandler):
    def do_PUT(self):
        size = len(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.headers["Authorization"] == "Bearer s3cret"
        print(self.command, self.path, size, "token" if known else "stranger", self.headers["X-From"], flush=True)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


HTTPServer((sys.argv[1], int(sys.argv[2])), Receiver).serve_forever()
