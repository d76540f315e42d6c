# mixed_text.py BYTES: text that is hard on a tokenizer, the same each time: source code and documentation of this machine's
# Python, markup, numbers, words in many scripts, emoji, every kind of white space. Letters of other scripts are drawn from
# code points that have been assigned since Unicode 6, so that libraries with other tables agree on what they are.
import glob, random, sys, unicodedata

wanted = int(sys.argv[1])
random.seed(20261118)
ranges = [(0x41, 0x5a), (0x61, 0x7a), (0xc0, 0x17f), (0x391, 0x3c9), (0x410, 0x44f), (0x5d0, 0x5ea), (0x621, 0x64a),
          (0x905, 0x939), (0xe01, 0xe2e), (0x3041, 0x3096), (0x30a1, 0x30fa), (0x4e00, 0x9fa5), (0xac00, 0xd7a3)]
letters = [[chr(c) for c in range(a, b + 1) if unicodedata.category(chr(c))[0] == "L"] for a, b in ranges]
spaces = [" "] * 12 + ["\n", "\n\n", "  ", "\t", "\r\n", "\u00a0", "\u3000", "\u2003", " \n ", "\u2028"]
emoji = ["\U0001f600", "\U0001f469\u200d\U0001f4bb", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd"]
marks = list(".,;:!?()[]{}<>\"'-_/\\@#$%^&*+=|~`") + ["...", "--", "\u2014", "\u201c", "\u201d", "\u3002", "\u00bf", "'s", "'re", "'LL"]

def word():
    kind = random.random()
    if kind < 0.12:
        return str(random.randrange(10 ** random.randrange(1, 12)))
    if kind < 0.14:
        return random.choice(["\u00bd", "\u0663\u0664", "\u2167", "\u00b2", "\u0967"])
    if kind < 0.17:
        return random.choice(emoji)
    script = random.choice(letters)
    text = "".join(random.choice(script) for _ in range(random.randrange(1, 12)))
    return text + ("\u0301" if random.random() < 0.05 else "")

def prose(n):
    out = []
    while n > 0:
        piece = word() + random.choice(spaces) if random.random() < 0.8 else random.choice(marks)
        out.append(piece)
        n -= len(piece.encode())
    return "".join(out)

def markup(n):
    return "".join(f"<p class=\"c{i}\" id='{random.random()}'>{word()} <b>{word()}</b>&nbsp;</p>\n" for i in range(n // 60))

sources = []
for name in sorted(glob.glob("/usr/lib/python3*/*.py"))[:120]:
    with open(name, encoding="utf-8", errors="ignore") as f:
        sources.append(f.read())
out, size = [], 0
while size < wanted:
    for part in (random.choice(sources)[:60000] if sources else prose(60000), prose(30000), markup(20000)):
        out.append(part)
        size += len(part.encode())
sys.stdout.buffer.write("".join(out).encode()[:wanted].decode(errors="ignore").encode())
