package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"

	logpart "github.com/countersign-run/countersign/shared/app/translog"
	"github.com/countersign-run/countersign/shared/base/kmskey"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/receipts/translog"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// openLog returns the files of the deployment's log, and the verifier keys of its checkpoints. It returns nil if there
// is no log. folder is a copy of the log, or empty.
func openLog(ctx context.Context, cfg config.Config, folder string) (log translog.Objects, keys string, err error) {
	if folder != "" {
		log = translog.NewFolder(folder)
	} else if log = logpart.Open(cfg); log == nil {
		return nil, "", nil
	}
	origin, key := translog.BucketOrigin(cfg.LogBucket), translog.PublicKey(nil)
	switch {
	case cfg.LogPublicKeys != "":
		return log, cfg.LogPublicKeys, nil
	case cfg.LogKMSKey != "":
		kms, err := kmskey.Open(ctx, cfg.LogKMSKey)
		if err != nil {
			return nil, "", err
		}
		defer kms.Close()
		key = kms
	case cfg.Store == "embedded":
		if _, err := os.Stat(filepath.Join(cfg.DataDir, translog.KeyFile)); errors.Is(err, fs.ErrNotExist) {
			return nil, "", nil // the store is of a release without a log, or was never swept
		}
		local, err := translog.LocalKey(cfg.DataDir)
		if err != nil {
			return nil, "", err
		}
		if key = local; cfg.LogBucket == "" {
			origin = local.Origin()
		}
	default:
		return nil, "", errors.New("set LOG_PUBLIC_KEYS or LOG_KMS_KEY: the log's checkpoints need a key")
	}
	keys, err = translog.VerifierKey(ctx, origin, key)
	return log, keys, err
}

// checkpointOf saves the log's checkpoint in a file, outside of the reach of those who can change the log.
func checkpointOf(*flag.FlagSet) runFunc {
	return func(ctx context.Context, o *operator, args []string) error {
		if args[0] != "save" {
			return errors.New("usage: checkpoint save FILE")
		}
		cfg, err := o.config(config.Store)
		if err != nil {
			return err
		}
		log, key, err := openLog(ctx, cfg, "")
		if err != nil {
			return err
		}
		if log == nil {
			return errNoLog
		}
		keys, err := translog.ParseKeys(key)
		if err != nil {
			return err
		}
		text, now, err := translog.Saved(ctx, log, keys)
		if errors.Is(err, translog.ErrGone) {
			return errNoLog
		}
		if err != nil {
			return err
		}
		if old, err := readKept(args[1], keys); err == nil {
			if err := translog.Consistent(ctx, log, old.Checkpoint, now); err != nil {
				return cmp.Or(o.printf("%s: %s; the file was not changed", args[1], err), errFailed)
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(args[1], text, 0o600); err != nil {
			return err
		}
		return o.printf("saved: %d entries of the log %s\nLOG_PUBLIC_KEYS=%s", now.N, now.Origin, key)
	}
}

var errNoLog = errors.New("the deployment has no log yet; the sweep publishes it")

// readKept reads a saved checkpoint.
func readKept(name string, keys note.Verifiers) (k translog.Kept, err error) {
	text, err := readFile(name, translog.MaxCheckpoint)
	if err != nil {
		return k, err
	}
	k.Name = name
	if k.Checkpoint, err = translog.ParseCheckpoint(text, keys); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return k, err
}

// logCheck compares the store with its log. A nil check compares nothing.
type logCheck struct {
	log      *translog.Log
	faults   []string
	unlogged []unlogged
}

// unlogged are consecutive entries of a chain that are not in the log.
type unlogged struct {
	chain       string
	first, last int64
	oldest      time.Time
}

// begin reads the log. It must precede the reading of the entries: an entry that is committed later is newer.
func (c *checker) begin(ctx context.Context, log translog.Objects, keys note.Verifiers, kept ...translog.Kept) error {
	l, faults, err := translog.Read(ctx, log, keys, kept...)
	if err != nil {
		return err
	}
	known := int64(0)
	if c.store != nil {
		if known, err = translog.Size(ctx, c.store); err != nil {
			return err
		}
	}
	if known > l.N {
		faults = append(faults,
			fmt.Sprintf("the log was rolled back: the store knows %d entries, the log has %d", known, l.N))
	}
	c.log = &logCheck{log: l, faults: faults}
	return nil
}

// see compares an entry with the log.
func (c *logCheck) see(e audit.Entry) {
	if c == nil || c.log.Has(e.Hash, e.At) {
		return
	}
	n := len(c.unlogged)
	if n > 0 && c.unlogged[n-1].chain == e.RunID && c.unlogged[n-1].last == e.Seq-1 {
		c.unlogged[n-1].last = e.Seq
		return
	}
	c.unlogged = append(c.unlogged, unlogged{e.RunID, e.Seq, e.Seq, e.At})
}

// publishedWithin is the age from which an entry must be in the log. The sweep publishes each minute.
const publishedWithin = 10 * time.Minute

// reportLog reports what differs between the store and the log, once all entries were compared.
func (c *checker) reportLog() {
	if c.log == nil {
		return
	}
	for _, text := range c.log.faults {
		c.fault("%s", text)
	}
	settled, waiting := c.log.log.Settled(), 0
	for _, u := range c.log.unlogged {
		switch {
		case u.oldest.Before(settled):
			c.problem(u.chain, "%s not in the log: changed, or added later", entries(u.first, u.last))
		case c.now().Sub(u.oldest) > publishedWithin:
			c.problem(u.chain, "%s not in the log, which is behind: the sweep publishes each minute",
				entries(u.first, u.last))
		default:
			waiting += int(u.last - u.first + 1)
		}
	}
	for i, g := range c.log.log.Gaps(c.now()) {
		if c.problems++; i < gapsMost {
			c.print("log: %s", g)
		} else if i == gapsMost {
			c.print("log: and further entries that are not in the store")
		}
	}
	c.print("log: %d entries, %d newer ones are not published yet", c.log.log.N, waiting)
}

// gapsMost is the number of gaps that are printed. The entries of runs that ran at the same time alternate in the log.
const gapsMost = 50

func (c *checker) fault(format string, args ...any) {
	c.problems++
	c.print("log: "+format, args...)
}

func entries(first, last int64) string {
	if first == last {
		return fmt.Sprintf("entry %d is", first)
	}
	return fmt.Sprintf("entries %d to %d are", first, last)
}

// export checks the entries of an export, which has no ends of chains: only the log shows that the last entries of a
// chain are missing.
func (c *checker) export(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("%s has no files of ops audit export", dir))
	}
	chains := map[string][]audit.Entry{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			e, err := audit.Decode(line)
			if err != nil {
				c.fault("%s has a line that is not an entry", name)
				continue
			}
			chains[e.RunID] = append(chains[e.RunID], e)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(chains)) {
		all := chains[id]
		slices.SortStableFunc(all, func(a, b audit.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
		c.runs++
		c.entries += len(all)
		for _, e := range all {
			c.log.see(e)
		}
		for _, p := range audit.VerifyAt(c.now(), all, audit.HeadOf(all)) {
			c.problem(id, "%s", p)
		}
	}
	return nil
}
