package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
	"github.com/countersign-run/countersign/shared/tools/memory"
)

// The faults of a host, injected when the worker is interrupted.
const (
	cut     fault = "every connection is cut"
	down    fault = "its SSH server is killed and restarted"
	reboot  fault = "it reboots: all processes end, and it has a new boot ID"
	wiped   fault = "~/.countersign is deleted"
	rekeyed fault = "it answers with other host keys for a while"
)

var hostFaults = []fault{cut, down, reboot, wiped, rekeyed}

// forgets reports whether the host may lose its record of a command, so that the user has to be asked about the
// outcome.
func forgets(f fault) bool { return f == reboot || f == wiped }

// host is a machine with OpenSSH's server, on which an environment's users run commands.
type host struct {
	*sshd.Server
	home, boot string
	boots      int
	others     time.Time // since when it has other host keys; zero if it has its own
	opened     *watched
	put        *watched // the files that uploads create
	ends       proof.Owner
}

// newHost starts a server with its files in dir.
func newHost(dir string) (h *host, err error) {
	h = &host{home: filepath.Join(dir, "home"), boot: filepath.Join(dir, "boot_id"), ends: proof.Owner{Dir: dir}}
	if err := os.MkdirAll(filepath.Join(h.home, "looked"), 0o700); err != nil {
		return nil, err
	}
	if err := h.newBoot(); err != nil {
		return nil, err
	}
	if h.opened, err = watch(filepath.Join(h.home, "looked")); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(h.home, putInto), 0o700); err != nil {
		return nil, err
	}
	if h.put, err = created(filepath.Join(h.home, putInto)); err != nil {
		return nil, err
	}
	err = proof.Attempt(func() {
		h.Server = sshd.Start(&h.ends, sshd.Options{Home: h.home, Env: []string{"COUNTERSIGN_BOOT=" + h.boot}})
	})
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *host) close() error {
	h.ends.Cleaned()
	return errors.Join(h.opened.close(), h.put.close())
}

func (h *host) newBoot() error {
	h.boots++
	return os.WriteFile(h.boot, fmt.Appendf(nil, "boot-%d\n", h.boots), 0o600)
}

// suffer injects the fault.
func (h *host) suffer(f fault) {
	switch f {
	case cut:
		h.Cut()
	case down:
		h.Kill()
		h.Restart()
	case reboot:
		h.Kill()
		h.KillAll()
		proof.Must(h.newBoot())
		h.Restart()
	case wiped:
		var err error
		for range 20 { // running commands may write to the folder meanwhile
			if err = os.RemoveAll(h.keeper()); err == nil {
				break
			}
		}
		proof.Must(err)
	case rekeyed:
		h.Kill()
		h.NewHostKeys()
		h.Restart()
		h.others = time.Now()
	}
}

// otherwise is the time during which the host has other keys.
const otherwise = time.Second

// recover makes the host answer with the original keys again, at once or after a while.
func (h *host) recover(at bool) {
	if h.others.IsZero() || !at && time.Since(h.others) < otherwise {
		return
	}
	h.Kill()
	h.OldHostKeys()
	h.Restart()
	h.others = time.Time{}
}

func (h *host) keeper() string { return filepath.Join(h.home, ".countersign") }

// login returns the host's present login data, with which a user adds it.
func (h *host) login() testkit.Login {
	return testkit.Login{Addr: h.Addr, User: h.User, Key: h.Key, HostKeys: h.HostKeys()}
}

// witnessed returns the effects that the user's commands have had on the host.
func (h *host) witnessed(uid string) (effects []invariants.Effect) {
	for _, w := range h.witnesses(uid) {
		effects = append(effects, invariants.Effect{UID: uid, ActionID: w.action, Agrees: wrote(w.subject)})
	}
	return effects
}

// witness is a line that a command has written: the ID of its action, and its subject.
type witness struct{ action, subject string }

// witnesses returns the lines that the user's commands have appended to the host's file.
func (h *host) witnesses(uid string) (all []witness) {
	text, err := os.ReadFile(filepath.Join(h.home, "witness"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		proof.Must(err)
	}
	for line := range strings.Lines(string(text)) {
		action, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(subject, uid+" ") {
			all = append(all, witness{action, subject})
		}
	}
	return all
}

// wrote returns a check that the executed command is the approved one.
func wrote(subject string) func(json.RawMessage) error {
	return func(args json.RawMessage) error {
		var a struct {
			Command  string
			Commands []struct{ Command string }
		}
		if err := json.Unmarshal(args, &a); err != nil {
			return err
		}
		if len(a.Commands) > 0 {
			a.Command = a.Commands[0].Command
		}
		if !strings.Contains(a.Command, subject+`"`) {
			return fmt.Errorf("%q was run instead of the approved command", subject)
		}
		return nil
	}
}

// ended reports whether the host has recorded the end of the action's command.
func (h *host) ended(actionID string) bool {
	text, err := os.ReadFile(filepath.Join(h.keeper(), actionID, "exit"))
	return err == nil && bytes.HasSuffix(bytes.TrimSpace(text), []byte(":."))
}

// left waits a while, and returns the processes that still run on the host.
func (h *host) left() (all []sshd.Process) {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if all = h.Processes(); len(all) == 0 || time.Now().After(end) {
			return all
		}
	}
}

// lineOf returns the command of a trial. Its output shows its action and how often it was started.
func lineOf(subject string, lasts time.Duration) string {
	return fmt.Sprintf(`echo "$COUNTERSIGN_ACTION %s" >> ~/witness; echo begun; sleep %v; echo over`, subject,
		lasts.Seconds())
}

// looked returns the name of the file that the n-th command of a trial reads.
func (t *trial) looked(n int) string {
	return filepath.Join(t.env.host.home, "looked", fmt.Sprintf("%s-%d", t.uid, n))
}

// prompt returns the prompt that makes the model request the n-th call of the trial.
func (t *trial) prompt(n int) string {
	prompt := t.kind.tool + " " + t.subject(n)
	if t.kind.tool == fetch.tool {
		prompt += " at the commit " + t.env.cloud.GitHub.Commits(t.uid, "web", "main")[0].SHA
	}
	return prompt
}

// subject returns the subject of the n-th call of the trial. For a command, it is the command line.
func (t *trial) subject(n int) string {
	switch {
	case t.kind.readsOnly:
		return "cat " + t.looked(n)
	case t.kind.tool == upload.tool:
		return t.name(n)
	case t.kind.onHost:
		return lineOf(t.name(n), t.scenario.lasts)
	case t.kind.patches:
		return t.scenario.name + byPatch + " for " + t.name(n)
	case t.kind.plans:
		return t.scenario.name + " for " + t.name(n)
	}
	return t.name(n)
}

// addHost adds the environment's host for the trial's user, and opens a terminal on it.
func (t *trial) addHost() {
	settings := map[string]any{}
	if t.kind.readsOnly {
		settings = map[string]any{"autoRun": "read_only", "readPaths": []string{filepath.Dir(t.looked(0))}}
		for n := range t.started() {
			proof.Must(os.WriteFile(t.looked(n), []byte("seen\n"), 0o600))
		}
	}
	c := t.at(t.env.worker)
	id, err := c.AddHost(t.ctx, t.env.host.login(), settings)
	proof.Must(err)
	t.terminal, err = c.OpenTerminal(t.ctx, id)
	proof.Must(err)
}

// effects returns the effects that were performed for the trial's user.
func (t *trial) effects() []invariants.Effect {
	switch {
	case t.kind.tool == commit.tool:
		return t.committed()
	case t.kind.contained:
		return t.contained()
	case t.kind.tool == memory.Remember:
		return t.remembered()
	case !t.kind.onHost:
		return append(t.env.effectsOf(t.uid), t.takenBack()...)
	case t.kind.tool == commandList.tool:
		return t.lists()
	case t.kind.tool == upload.tool:
		return t.uploads()
	case !t.kind.readsOnly:
		return t.env.host.witnessed(t.uid)
	}
	var all []invariants.Effect
	for n := range t.started() {
		a := t.view(n)
		for range t.env.host.opened.times(filepath.Base(t.looked(n))) {
			e := invariants.Effect{UID: t.uid}
			if len(a.Actions) > 0 {
				e.ActionID = a.Actions[0].ActionID
			}
			all = append(all, e)
		}
	}
	return all
}

// checkHost checks the guarantees that only commands have.
func (t *trial) checkHost() {
	reviews := 0
	for n := range t.started() {
		a := t.view(n)
		if len(a.Approvals) == 0 || a.Approvals[0].Kind != "review" {
			continue
		}
		reviews++
		ended := t.env.host.ended
		if t.kind.tool == commandList.tool {
			ended = t.env.host.endedList
		}
		if ended(a.Approvals[0].ActionID) {
			t.problem("the user is asked about the outcome, but the host has recorded it")
		}
	}
	if reviews > 0 && !forgets(t.fault) {
		t.problem("the user is asked about the outcome, but the host has not lost its records: %s", t.ends())
	}
	// A command that had not started must not begin on a host with other keys.
	if n := len(t.effects()); reviews == 0 && !forgets(t.fault) && t.fault != rekeyed && !t.slow &&
		!t.scenario.effects(n) {
		if n == 0 {
			t.overdue("no effect; %s", t.ends())
		} else {
			t.problem("%d effects; %s", n, t.ends())
		}
	}
	t.checkLists(reviews == 0 && !forgets(t.fault) && t.fault != rekeyed && !t.slow && !t.scenario.ends)
	if left := t.env.host.left(); len(left) > 0 {
		t.problem("processes left on the host: %v", left)
	}
}

// nextRun starts another run on the terminal, which the previous run must have freed.
func (t *trial) nextRun() {
	a, err := t.at(t.env.worker).AskOn(t.ctx, t.terminal, "", "hello")
	if proof.Must(err); a.HTTP != 200 || a.Status != "completed" {
		t.problem("the terminal is not free: %d %s", a.HTTP, a.Body)
	}
}
