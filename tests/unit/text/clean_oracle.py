#!/usr/bin/env python3
"""The published detokenisers as they are written in Python, to compare lib/text/clean.cc with.

clean_oracle.py CASES: for each detokeniser so many pseudo-random documents, as lines of JSON with name, in and out.
clean_oracle.py --file FILE: the same for the lines of a text file. --hash FILE prints one SHA-256 a detokeniser over
the cleaned whole file instead. The documents are made of pieces that the rules look for, from a fixed seed.
"""
import hashlib
import json
import random
import re
import sys


def ptb(x):
    x = x.replace(" 's", "'s").replace("s ' ", "s' ").replace(" n't", "n't").replace(" \n ", "\n").replace("\\/", "/")
    for _ in range(10):
        x = x.replace(" N ", " 1 ")
    return x.replace("$ 1", "$1").replace("# 1", "#1").replace("<unk>", "?")


def wikitext(x):
    x = x.replace("s '", "s'")
    x = re.sub(r"/' [0-9]/", r"/'[0-9]/", x)
    for mark in "-,.":
        x = x.replace(" @" + mark + "@ ", mark)
    for mark in ":;.!?,":
        x = x.replace(" " + mark + " ", mark + " ")
    x = re.sub(r"\(\s*([^\)]*?)\s*\)", r"(\1)", x)
    x = re.sub(r"\[\s*([^\]]*?)\s*\]", r"[\1]", x)
    x = re.sub(r"{\s*([^}]*?)\s*}", r"{\1}", x)
    x = re.sub(r"\"\s*([^\"]*?)\s*\"", r'"\1"', x)
    x = re.sub(r"'\s*([^']*?)\s*'", r"'\1'", x)
    x = x.replace("= = = =", "====").replace("= = =", "===").replace("= =", "==")
    x = x.replace(" \u00b0 ", "\u00b0").replace(" \n", "\n").replace("\n ", "\n").replace(" N ", " 1 ")
    return x.replace(" 's", "'s")


def lm1b(x):
    x = x.replace("http : / / ", "http://").replace("https : / / ", "https://")
    x = re.sub(r" \'(\w+)", r"'\1", x)
    x = re.sub(r" (\w+) \. ", r" \1. ", x)
    x = re.sub(r" (\w+) \.$", r" \1.", x)
    x = x.replace(" ? ", "? ")
    x = re.sub(r" \?$", "?", x)
    x = x.replace(" ! ", "! ")
    x = re.sub(r" \!$", "!", x)
    x = x.replace(" , ", ", ").replace(" : ", ": ").replace(" ; ", "; ").replace(" / ", "/")
    x = re.sub(r"\" ([^\"]+) \"", r'"\1"', x)
    x = re.sub(r"\' ([^\']+) \'", r"'\1'", x)
    x = re.sub(r"\( ([^\(\)]+) \)", r"(\1)", x)
    x = re.sub(r"\[ ([^\[\]]+) \]", r"[\1]", x)
    return x.replace("$ ", "$").replace("\u00a3 ", "\u00a3")


def lambada(x):
    return "\n" + x.replace("\u201c", '"').replace("\u201d", '"').strip()


DETOKENISERS = {"none": lambda x: x, "ptb": ptb, "wikitext": wikitext, "lm1b": lm1b, "lambada": lambada}

SPACES = [" "] * 12 + ["  ", "\n", "\n", "\t", "\r", "\x0b", "\x1c", "\x1f", "\x85", "\xa0", "\u2003", "\u3000"]
SPACES += ["\u200b"]  # not one for Python
WORDS = ["s", "a", "cats", "N", "n't", "1", "42", "x_y", "unk", "http", "https", "\u00e9t\u00e9", "\u00df"]
WORDS += ["\u4e2d\u6587", "\u0928\u092e", "\u0301", "\u00bd", "\u2167", "\U0001f600", "\U0001d538", "\u0663", "\u00b0"]
WORDS += ["\x00", "\ufffd"]
MARKS = ["'", "'", "'", '"', '"', "(", ")", "[", "]", "{", "}", ".", ".", "?", "!", ",", ":", ";", "/", "=", "$", "#"]
MARKS += ["\u00a3", "\\", "\u201c", "\u201d", "@"]
PHRASES = [" 's", "s ' ", " n't", " \n ", "\\/", " N N N ", "$ 1", "# 1", "<unk>", "s '", "/' 1/' 2/", " @-@ "]
PHRASES += [" @,@ ", " @.@ ", " : ", " ; ", " . ", " ! ", " ? ", " , ", "( ( a ) ", "[ a [ b ] ]", "{ a }", '" a "']
PHRASES += ["' b '", "= = = =", "= = = = =", " \u00b0 ", " \n", "\n ", " N ", "http : / / ", "https : / / "]
PHRASES += [" a . b . c . ", " ab .", " ?", " !", "\u00a3 ", "$ "]
ENDS = ["", "", "", "\n", "\n\n", " .", " a .", " a .\n", " ?", " ?\n", " !", " !\n", " \u00e9 .\n", " \u0301 .", " "]
ENDS += ["\u2003"]
MIXTURES = [(4, 3, 3, 1), (3, 2, 1, 1), (1, 1, 1, 6)]  # of the four kinds above


def documents(cases):
    choose = random.Random(20261118)
    for _ in range(cases):
        mixture = choose.choice(MIXTURES)
        kinds = choose.choices([SPACES, WORDS, MARKS, PHRASES], weights=mixture, k=choose.randint(0, 40))
        yield "".join(choose.choice(kind) for kind in kinds) + choose.choice(ENDS)


def main(arguments):
    if arguments[0] == "--hash":
        text = open(arguments[1], newline="", encoding="utf-8").read()
        for name, clean in DETOKENISERS.items():
            print(name, hashlib.sha256(clean(text).encode()).hexdigest())
        return
    if arguments[0] == "--file":
        inputs = open(arguments[1], newline="\n", encoding="utf-8")
    else:
        inputs = documents(int(arguments[0]))
    for text in inputs:
        for name, clean in DETOKENISERS.items():
            print(json.dumps({"name": name, "in": text, "out": clean(text)}))


if __name__ == "__main__":
    main(sys.argv[1:])
