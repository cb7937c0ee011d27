# shellcheck shell=bash disable=SC2154
# Sourced by scripts/gpu-validate: what it keeps of a step in $work, for gpu-report.awk.

status_of() { awk -v name="$1" '$1 == name { print $2 }' "$work/statuses"; }  # NAME: of a step's last try

last_words() {  # LOG: what a line can hold of it
  awk '/ERROR: |skipped: / && !best { best = $0 } NF { last = $0 }
    END { line = best ? best : last; gsub(/[\t\r]/, " ", line); print substr(line, 1, 200) }' "$1"
}

excerpt() {  # NAME STATUS: of a failed step's log
  awk -v name="$1" -v status="$2" '{ line[NR] = $0 } /ERROR: / && !from { from = NR }
    END {
      print "\n" name " failed (" status "):\n"
      if (!from) { from = NR - 3 < 1 ? 1 : NR - 3 }
      for (i = from; i <= NR && i < from + 7; ++i) print "    " substr(line[i], 1, 160)
    }' "$work/logs/$1.log" >"$work/logs/$1.failed"
}

keep() {  # NAME: of a run that went well, from its scenario, its report and its plan's evaluation
  local at=$work/runs/$1
  awk -v name="$1" -v evidence="$at.evidence" '
    FNR == 1 { ++file; section = "" }
    /^  "[a-z_]*": [{[]/ { section = substr($1, 2, length($1) - 3) }
    file == 1 { scenario = scenario "  " $0 "\n"; if (sub(/^model: /, "")) model = $0; if (/precision: bf16/) bf16 = 1 }
    file > 1 && NF == 2 && !((file, section, $1) in of) { sub(/,$/, "", $2); of[file, section, $1] = $2 }
    file == 2 && section == "notes" && /^    "/ { gsub(/^    "|",?$/, ""); notes = notes (notes == "" ? "" : "; ") $0 }
    function figure(file, section, key) { key = "\"" key "\":"; return (file, section, key) in of ? of[file, section, key] : 0 }
    END {
      print name, model, bf16 + 0, figure(2, "measured", "iteration_s"), figure(2, "predicted", "iteration_s"),
        figure(3, "time", "iteration_s"), figure(3, "throughput", "tokens_per_s"), figure(3, "throughput", "mfu")
      gsub(/\047/, "\047\047", notes)
      printf("- id: %s\n%s  measured: {iteration_s: %s}\n", name, scenario, figure(2, "measured", "iteration_s")) >evidence
      printf("  reported: {tensor_bytes: %s}\n  where: %s.json\n  notes: \047%s\047\n",
        figure(2, "measured", "peak_bytes"), name, notes) >evidence
    }' "$at.yaml" "$at.json" "$at.evaluated.json" >>"$work/facts"
}
