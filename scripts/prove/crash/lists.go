package crash

import (
	"strings"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/tools/command"
)

// commandList runs three commands by one approval. The first is the trial's command. The second fails, so the third
// must never run.
var commandList = kind{name: "list of commands", tool: command.RunList, mode: "draft", onHost: true}

// listed returns the list whose first command is the given one. The other commands also write to the witness.
func listed(first string) map[string]any {
	echo, _, _ := strings.Cut(first, ";")
	named := func(n string) string { return strings.Replace(echo, " run ", n+" run ", 1) }
	return testkit.Commands(first, named(" second")+"; (exit 3)", named(" third"))
}

// lists returns one effect for each start of the first command of a list.
func (t *trial) lists() (effects []invariants.Effect) {
	for _, w := range t.env.host.witnesses(t.uid) {
		if action, first := strings.CutSuffix(w.action, supervisor.InList("", 0)); first {
			effects = append(effects, invariants.Effect{UID: t.uid, ActionID: action, Agrees: wrote(w.subject)})
		}
	}
	return effects
}

// checkLists checks the commands after the first. Each runs at most once and after the one before it, and none after
// the second. whole reports that nothing was lost or stopped, so the second command must have run.
func (t *trial) checkLists(whole bool) {
	ran := map[string]string{} // the numbers of the commands that ran, by action
	for _, w := range t.env.host.witnesses(t.uid) {
		if i := strings.LastIndexByte(w.action, '-'); i >= 0 {
			ran[w.action[:i]] += w.action[i+1:]
		}
	}
	for action, order := range ran {
		if !strings.HasPrefix("12", order) || whole && order != "12" {
			t.problem("the commands %s of the list %s ran, in this order; %s", order, action, t.ends())
		}
	}
}

// endedList reports whether the host has recorded the end of a list: the end of its second command, which fails.
func (h *host) endedList(actionID string) bool { return h.ended(supervisor.InList(actionID, 1)) }
