# awk -v work=DIR -v today=DATE -f gpu-report.awk DIR/steps.txt DIR/facts DIR/logs/baseline.log: what scripts/gpu-validate has
# left so far, as DIR/summary.md and DIR/evidence.yaml; DIR/statuses has "name status" of each step's last try. Called after
# every step, so this is one process.
#   steps.txt  name status seconds last-words; - is left out, (status) is information only
#   facts      of each run that went well: name, model, is it in bf16, measured and predicted seconds, and of the plan's
#              evaluation the seconds, tokens a second and MFU

FNR == 1 { ++file }
FILENAME ~ /steps\.txt$/ && NF {
  step = $1
  if (!(step in status)) names[++count] = step
  if ($2 == "-" && step in status) next
  status[step] = $2
  sub(/^[^ ]* [^ ]* [^ ]* ?/, "")
  words[step] = $0
}
FILENAME ~ /facts$/ && $4 > 0 {
  model[$1] = $2; bf16[$1] = $3; measured[$1] = $4; predicted[$1] = $5; tokens[$1] = $7 * $6; mfu[$1] = $8 * $6
}
FILENAME ~ /baseline\.log$/ && /^{"model"/ && match($0, /"iteration_s": [0-9.e+-]+/) {
  seconds = substr($0, RSTART + 15, RLENGTH - 15) + 0
  split($0, word, "\"")
  torch[word[4], word[8]] = seconds
}

function shown(is, form, value) { return is ? sprintf(form, value) : "" }

function copy(from, to,    line) {
  while ((getline line <from) > 0) print line >to
  close(from)
}

function on_whole_gpu(name) { return name ~ /^(gpt3|llama)-/ }

function run_row(name,    m, eager, compiled, best) {
  m = measured[name]
  eager = bf16[name] * torch[model[name], "eager"]
  compiled = bf16[name] * torch[model[name], "compiled"]
  best = compiled ? compiled : eager
  return sprintf("%.4g | %.4g | %+.1f | %s | %s | %s | %s | %s", m, predicted[name], 100 * (predicted[name] - m) / m, \
    shown(tokens[name], "%.0f", tokens[name] / m), shown(mfu[name], "%.1f", 100 * mfu[name] / m), \
    shown(eager, "%.4g", eager), shown(compiled, "%.4g", compiled), shown(best, "%.2f", best / m))
}

# Parts of a GPU are predicted as whole ones: only their times over one another mean anything.
function virtual_row(name,    gpipe) {
  gpipe = substr(name, 1, 10) "gpipe"
  return sprintf("%.4g | %s", measured[name], gpipe in measured ? sprintf("%.3f", measured[name] / measured[gpipe]) : "")
}

function head(to,    i, name, well, bad, left, information) {
  for (i = 1; i <= count; ++i) {
    name = names[i]
    print name, status[name] >(work "/statuses")
    if (status[name] == "0") ++well
    else if (status[name] == "-") left = left " " name
    else if (status[name] !~ /^\(/) ++bad
    else if (status[name] != "(0)") information = information name ": " words[name] "\n"
  }
  printf("# A GPU validated on %s\n\n%s\n\n", today, words["machine"]) >to
  printf("%d steps went well, %d failed. Left out for want of time:%s\n", well, bad, left == "" ? " none" : left) >to
  printf("%s", information) >to
}

function failures(to,    i, n) {
  for (i = 1; i <= count && n < 8; ++i) {
    if (status[names[i]] ~ /^(0|-|\(.*\))$/) continue
    ++n
    copy(work "/logs/" names[i] ".failed", to)
  }
}

function tables(to,    i, name, good, parts, rows) {
  for (i = 1; i <= count; ++i) {
    name = names[i]
    good = status[name] == "0" && name in measured
    if (name ~ /^virtual-[248]-/)
      parts = parts "| " name " | " status[name] " | " (good ? virtual_row(name) : "|") " |\n"
    else if (on_whole_gpu(name))
      rows = rows "| " name " | " status[name] " | " (good ? run_row(name) : "| | | | | | |") " |\n"
  }
  if (parts != "") {
    print "\nVirtual devices share one GPU: only ratios between schedules mean anything.\n" >to
    printf("| run | status | measured, s | over GPipe |\n| --- | --- | --- | --- |\n%s", parts) >to
  }
  if (rows != "") {
    print "\n| run | status | measured, s | predicted, s | error, % | tokens/s | MFU, % | PyTorch, s | compiled, s " \
      "| PyTorch / ours |" >to
    printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n%s", rows) >to
  }
}

function evidence(to,    i, name, where, any) {
  where = words["machine"]
  gsub(/\047/, "", where)
  for (i = 1; i <= count; ++i) {
    name = names[i]
    if (!on_whole_gpu(name) || status[name] != "0" || !(name in measured)) continue
    if (!any++) {
      printf("source: {title: \047Shardplan on GPUs, scripts/gpu-validate\047, ref: \047measured %s\047, ", today) >to
      printf("where: \047%s\047}\nruns:\n", where) >to
    }
    copy(work "/runs/" name ".evidence", to)
  }
}

END {
  head(work "/summary.md")
  failures(work "/summary.md")
  tables(work "/summary.md")
  evidence(work "/evidence.yaml")
}
