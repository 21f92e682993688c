-- Who sent it: nobody takes a name from another. Of what was kept before, nobody knows.
ALTER TABLE incidents ADD COLUMN sender <key> NOT NULL DEFAULT '';
