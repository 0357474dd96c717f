package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

// Tests with several processes run this binary again as a child that does one job in the directory.
const (
	jobVar = "EMBEDDED_TEST_JOB"
	dirVar = "EMBEDDED_TEST_DIR"
)

var jobs = map[string]func(st store.Store) error{"append": appendForever, "crowd": crowdForever, "count": countTo50}

func TestMain(m *testing.M) {
	job := jobs[os.Getenv(jobVar)]
	if job == nil {
		leaktest.Main(m)
	}
	st, err := embedded.Open(os.Getenv(dirVar), time.Now)
	if err == nil {
		err = errors.Join(job(st), st.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(t *testing.T, job, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), jobVar+"="+job, dirVar+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// appendForever prints the number of each commit once it is acknowledged.
func appendForever(st store.Store) error {
	for n := 0; ; n++ {
		_, err := st.Commit(context.Background(),
			store.Create(fmt.Sprintf("runs/%d", n),
				map[string]any{"due": time.UnixMicro(int64(n)), "dueShard": int64(1)},
				[]byte(strconv.Itoa(n))),
			store.Create(fmt.Sprintf("runs/%d/events/1", n), nil, []byte(strconv.Itoa(n))))
		if err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// crowdForever lets 16 callers append at once, each to a run of its own; every third commit conflicts.
func crowdForever(st store.Store) error {
	ended := make(chan error)
	for caller := range 16 {
		go func() {
			for n := 0; ; n++ {
				id := 16*n + caller
				path := fmt.Sprintf("runs/%d", id)
				writes := []store.Write{store.Create(path, map[string]any{"due": time.UnixMicro(int64(id))},
					[]byte(strconv.Itoa(id))), store.Create(path+"/events/1", nil, []byte(strconv.Itoa(id)))}
				_, err := st.Commit(context.Background(), writes...)
				if err == nil && n%3 == 0 {
					if _, err = st.Commit(context.Background(), store.Create(path+"/events/2", nil, nil),
						writes[0]); errors.Is(err, store.ErrConflict) {
						err = nil
					}
				}
				if err != nil {
					ended <- err
					return
				}
				fmt.Println(id)
			}
		}()
	}
	return <-ended
}

// After kill -9, every acknowledged commit is there and complete, and the next process can continue.
func TestKill(t *testing.T) {
	for round := range 3 {
		dir := t.TempDir()
		answered := killed(t, "append", dir, 40+round*17)
		checkAppended(t, file(t, dir, time.Now), answered[len(answered)-1])
	}
}

// TestKillCrowd is TestKill for commits that are written together.
func TestKillCrowd(t *testing.T) {
	for round := range 3 {
		dir := t.TempDir()
		answered := killed(t, "crowd", dir, 200+round*77)
		st := file(t, dir, time.Now)
		for n := range slices.Max(answered) + 1 {
			path := fmt.Sprintf("runs/%d", n)
			docs, err := st.Get(t.Context(), path, path+"/events/1", path+"/events/2")
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(answered, n) && !docs[0].Exists() {
				t.Errorf("commit %d was answered and is not there", n)
			}
			if docs[0].Exists() != docs[1].Exists() || docs[2].Exists() {
				t.Errorf("commit %d is there in part: %+v", n, docs)
			}
		}
	}
}

// killed starts a child, kills it after that many lines, and returns their numbers.
func killed(t *testing.T, job, dir string, after int) (answered []int) {
	t.Helper()
	cmd := child(t, job, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		answered = append(answered, n)
		if len(answered) == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || len(answered) < after {
		t.Fatalf("the child ended by itself after %d commits: %v", len(answered), err)
	}
	return answered
}

func checkAppended(t *testing.T, st store.Store, last int) {
	t.Helper()
	// One more commit than was acknowledged may exist, if it is complete.
	for n := range last + 2 {
		docs, err := st.Get(t.Context(), fmt.Sprintf("runs/%d", n), fmt.Sprintf("runs/%d/events/1", n))
		if err != nil {
			t.Fatal(err)
		}
		if docs[0].Exists() != docs[1].Exists() || n <= last &&
			string(docs[0].Data)+string(docs[1].Data) != fmt.Sprintf("%d%d", n, n) {
			t.Fatalf("commit %d of %d acknowledged: %+v", n, last, docs)
		}
	}
	docs, err := st.Query(t.Context(), store.Query{Collection: "runs", OrderBy: "due", Limit: store.MaxLimit,
		Where: []store.Filter{{Field: "dueShard", Op: "==", Value: int64(1)}}})
	if err != nil || len(docs) < last+1 {
		t.Fatalf("the index has %d of %d: %v", len(docs), last+1, err)
	}
	if _, err := st.Commit(t.Context(), store.Create("threads/next", nil, nil)); err != nil {
		t.Fatal(err)
	}
}

func countTo50(st store.Store) error {
	ctx := context.Background()
	for done := 0; done < 50; {
		docs, err := st.Get(ctx, "runs/counter")
		if err != nil {
			return err
		}
		d := docs[0]
		write := store.Create(d.Path, map[string]any{"seq": int64(1)}, nil)
		if d.Exists() {
			write = store.Update(d.Path, d.Version, map[string]any{"seq": d.Fields["seq"].(int64) + 1}, nil)
		}
		versions, err := st.Commit(ctx, write)
		switch {
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrUnavailable): // another process was first
			continue
		case err != nil:
			return err
		case !versions[0].After(d.Version):
			return fmt.Errorf("version %v after %v", versions[0], d.Version)
		}
		done++
	}
	return nil
}

// Several processes open one new directory at once and increment one document: no increment is lost or counted twice.
func TestProcesses(t *testing.T) {
	const processes = 6
	dir := t.TempDir()
	var running []*exec.Cmd
	for range processes {
		cmd := child(t, "count", dir)
		cmd.Stderr = new(strings.Builder)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process failed: %v: %s", err, cmd.Stderr)
		}
	}
	docs, err := file(t, dir, time.Now).Get(t.Context(), "runs/counter")
	if err != nil || docs[0].Fields["seq"] != int64(processes*50) {
		t.Fatalf("%d processes counted to %v: %v", processes, docs[0].Fields["seq"], err)
	}
}
