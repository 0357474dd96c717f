package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

// The tests of several processes run this binary again as a child that does one job on the directory.
const (
	jobVar = "EMBEDDED_TEST_JOB"
	dirVar = "EMBEDDED_TEST_DIR"
)

var jobs = map[string]func(st store.Store) error{"append": appendForever, "count": countTo50}

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

// After kill -9, every acknowledged commit is there and complete, and the next process can continue.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		dir := fmt.Sprintf("%s/%d", dir, round)
		cmd := child(t, "append", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last, lines := -1, bufio.NewScanner(out)
		for lines.Scan() {
			if last, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if last == 40+round*17 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || last < 40 {
			t.Fatalf("the child ended by itself after %d commits: %v", last+1, err)
		}
		checkAppended(t, file(t, dir, time.Now), last)
	}
}

func checkAppended(t *testing.T, st store.Store, last int) {
	t.Helper()
	// One commit more than was acknowledged may be there, if it is complete.
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
		case errors.Is(err, store.ErrConflict):
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
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process failed: %v", err)
		}
	}
	docs, err := file(t, dir, time.Now).Get(t.Context(), "runs/counter")
	if err != nil || docs[0].Fields["seq"] != int64(processes*50) {
		t.Fatalf("%d processes counted to %v: %v", processes, docs[0].Fields["seq"], err)
	}
}
