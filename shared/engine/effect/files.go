package effect

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/engine/upload"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// KeptFiles are the files of a model's answer or of a tool's result that the run keeps.
type KeptFiles struct {
	files []attachment.File
	index []int // of each file among those that KeepFiles got
}

// KeepFiles returns the files that the next commit stores with the run. If they are too large for a commit, each is
// uploaded first. The commit then makes the upload a file of the run; if the process dies before that, the upload is
// deleted. Files beyond the limits of the run are left out. The error is that of a store.
func KeepFiles(ctx context.Context, ex *unit.Execution, files []attachment.File) (k KeptFiles, err error) {
	if len(files) == 0 {
		return k, nil
	}
	room, size := roomOf(ex), 0
	for i, f := range files {
		if room.take(len(f.Data)) {
			k.files, k.index = append(k.files, f), append(k.index, i)
			size += len(f.Data)
		}
	}
	if size <= attachment.MaxBytes {
		return k, nil
	}
	return k.uploaded(ctx, ex)
}

// uploaded uploads the files. A file that the user may not upload now is left out.
func (k KeptFiles) uploaded(ctx context.Context, ex *unit.Execution) (all KeptFiles, err error) {
	up := upload.Uploads{Store: ex.Store, Files: ex.Files, Now: ex.Env.Now, Random: ex.Random}
	for i, f := range k.files {
		u, err := up.Add(ctx, ex.Run.UID, f)
		switch {
		case fault.Is(err, fault.Policy, fault.CodeTooMany):
			continue
		case err != nil:
			return KeptFiles{}, unit.StoreError(err)
		}
		stored := u.File(f.Name)
		stored.Tool = f.Tool
		all.files, all.index = append(all.files, stored), append(all.index, k.index[i])
	}
	return all, nil
}

// Store stores the files with the run, and returns their descriptions.
func (k KeptFiles) Store(tx *unit.Tx) ([]attachment.Stored, error) { return tx.AddMade(k.files) }

// Index returns the place of a kept file among those that KeepFiles got.
func (k KeptFiles) Index(i int) int { return k.index[i] }

// room is how many files of answers and results a run can still keep, and how many bytes of them.
type room struct{ files, bytes int }

// roomOf returns the room of the run. No run keeps the conversation of a page's agent, and without a store of files a
// commit must hold all of them.
func roomOf(ex *unit.Execution) room {
	if ex.Agents.Get(ex.Run.Agent).Page {
		return room{}
	}
	r := room{attachment.MaxFiles - len(ex.State.Made), attachment.MaxUpload}
	for _, f := range ex.State.Made {
		r.bytes -= f.Size
	}
	if ex.Files == nil {
		r.bytes = min(r.bytes, attachment.MaxBytes)
	}
	return r
}

// take reports whether a file of this size fits, and takes its part of the room.
func (r *room) take(size int) bool {
	if r.files <= 0 || size > r.bytes {
		return false
	}
	r.files, r.bytes = r.files-1, r.bytes-size
	return true
}

// attached collects the files that a tool attaches to the result of a call ([tool.Call.Attach]).
type attached struct {
	tool string
	had  int // files of the run's answers and results
	room room

	mu    sync.Mutex
	files []attachment.File
}

func attachedTo(ex *unit.Execution, a *run.Action) *attached {
	return &attached{tool: a.Tool, had: len(ex.State.Made), room: roomOf(ex)}
}

// add adds a file, and returns its name, or "" if the run cannot keep it.
func (t *attached) add(data []byte) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, ok := attachment.Generated(fmt.Sprintf("%s-%d", t.tool, t.had+len(t.files)+1), data)
	if !ok || !t.room.take(len(data)) {
		return ""
	}
	f.Data, f.Tool = slices.Clone(data), t.tool
	t.files = append(t.files, f)
	return f.Name
}

// all returns the files. Files that the tool adds later are ignored.
func (t *attached) all() []attachment.File {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files
}
