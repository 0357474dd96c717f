package demomodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

// result is the outcome of a command.
type result struct {
	Output   string `json:"output"`
	ExitCode int    `json:"exitCode"`
	TimedOut bool   `json:"timedOut"`

	failed string // why it was not executed, or is not known to have been
}

func (r result) ok() bool { return r.failed == "" && r.ExitCode == 0 && !r.TimedOut }

// no reports whether the user rejected the command.
func (r result) no() bool { return rejected.MatchString(r.failed) }

// lastWords returns the end of a command's output, in one line.
func (r result) lastWords() string {
	lines := strings.Split(strings.TrimSpace(r.Output), "\n")
	return excerpt(lines[len(lines)-1], 200)
}

// why returns the reason why a command failed.
func (r result) why() string {
	switch {
	case r.no():
		return join(capitalise(refusal(r.failed))+".", r.failed[len(rejected.FindString(r.failed)):])
	case r.TimedOut:
		return "It was ended at its time limit."
	case r.failed != "":
		return r.failed
	}
	return join(fmt.Sprintf("It ended with exit code %d:", r.ExitCode), r.lastWords())
}

// result reads the answer of a command, including one that the user edited.
func (s step) result() (r result) {
	var answer struct {
		Output json.RawMessage `json:"output"`
		Error  string          `json:"error"`
	}
	if json.Unmarshal(s.raw, &answer) != nil {
		return result{failed: "The answer is unclear."}
	}
	if text := ""; json.Unmarshal(answer.Output, &text) == nil {
		answer.Output = s.raw // the facts are next to the text
	}
	var edited struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(answer.Output, &edited) == nil && edited.Result != nil {
		answer.Output = edited.Result
	}
	err := json.Unmarshal(answer.Output, &r) // there is none where it was not executed
	if r.failed = answer.Error; r.failed == "" && err != nil {
		r.failed = "The answer is unclear."
	}
	return r
}

// sized formats a size in KiB as MiB or GiB.
func sized(kib int64) string {
	if kib >= 1<<20 {
		return fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
	}
	return fmt.Sprintf("%d MiB", (kib+512)/1024)
}
