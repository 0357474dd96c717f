package invariants

import (
	"bytes"
	"context"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
)

// terminal checks the documents of the run's terminal. While the run is open, the terminal and its host exist, belong
// to the run's user, are on the user's list, and the terminal is reserved for this run. No secret of an existing host
// can be read.
func (c *checked) terminal(ctx context.Context, st store.Store) error {
	hostID, ok := terminal.HostOf(c.run.Terminal)
	if !ok {
		return nil
	}
	docs, err := st.Get(ctx, append(terminal.Reads(tool.Scope{UID: c.run.UID, Terminal: c.run.Terminal}),
		document.TerminalRunPath(c.run.UID, c.run.Terminal))...)
	if err != nil {
		return err
	}
	if bytes.Contains(docs[1].Data, []byte("PRIVATE KEY")) {
		c.violates(Sealed, "a private key lies open in %s", docs[1].Path)
	}
	if c.state.End != nil || document.RunFieldsOf(c.doc).Quarantined {
		return nil
	}
	l, _, err := terminal.ReadList(ctx, st, c.run.UID)
	if err != nil {
		return err
	}
	for i, listed := range []bool{slices.Contains(l.Terminals, c.run.Terminal), slices.Contains(l.Hosts, hostID)} {
		if !docs[i].Exists() || !listed {
			c.violates(NoOrphan, "%s exists: %t, and its user's list has it: %t", docs[i].Path, docs[i].Exists(),
				listed)
		}
	}
	var kept run.TerminalRun
	if err := document.Decode(docs[2], &kept); err != nil || kept.RunID != c.run.ID || kept.UID != c.run.UID {
		c.violates(OneOpen, "the terminal is kept for run %q of %s (%v)", kept.RunID, kept.UID, err)
	}
	return nil
}
