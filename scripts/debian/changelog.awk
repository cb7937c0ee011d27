# CHANGELOG.md as Debian's changelog: -v maintainer="NAME <ADDRESS>" -v date="Mon, 01 Jan 2026 00:00:00 +0000"
function wrapped(text, begin,   words, count, i, line) {
  count = split(text, words, " ")
  line = begin words[1]
  for (i = 2; i <= count; ++i) {
    if (length(line) + 1 + length(words[i]) <= 79) { line = line " " words[i]; continue }
    print line
    line = "    " words[i]
  }
  print line
}
function finish() { if (version != "") print "\n -- " maintainer "  " date "\n" }
/^## / { finish(); version = $2; print "shardplan (" version ") unstable; urgency=medium\n" }
version != "" && /^- / { wrapped(substr($0, 3), "  * ") }
version != "" && /^  [^ ]/ { wrapped(substr($0, 3), "    ") }
END { finish() }
