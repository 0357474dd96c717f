package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
)

// TestDeliverAfterKill has another process, this test binary again, claim a message in a file, and kills it in the
// middle of the push.
func TestDeliverAfterKill(t *testing.T) {
	const dirVar = "QUEUE_TEST_DIR"
	if dir := os.Getenv(dirVar); dir != "" {
		pushForEver(t, dir)
	}
	dir := t.TempDir()
	c := &clock{time.Now()}
	q := embedded.New(openFile(t, dir), embedded.Options{Now: c.now})
	if err := q.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
		t.Fatal(err)
	}
	victim := exec.Command(os.Args[0], "-test.run=^TestDeliverAfterKill$", "-test.timeout=1m")
	victim.Env = append(os.Environ(), dirVar+"="+dir)
	victim.Stderr = os.Stderr
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	killErr := victim.Process.Kill()
	var exit *exec.ExitError
	if err := victim.Wait(); readErr != nil || killErr != nil || !errors.As(err, &exit) || line != "pushing\n" {
		t.Fatalf("the other process said %q: %v, %v, %v", line, readErr, killErr, err)
	}

	c.at = time.Now()
	deliver(t, q, acks, 0) // its claim has not expired
	c.add(embedded.AckDeadline)
	deliver(t, q, func(_ context.Context, envelope []byte) error {
		if d, err := queue.ParsePush(envelope, ""); d.RunID != run || d.Attempt != 2 || err != nil {
			t.Errorf("pushed %+v, %v; want the second attempt", d, err)
		}
		return nil
	}, 1)
	c.add(time.Hour)
	deliver(t, q, acks, 0)
}

func pushForEver(t *testing.T, dir string) {
	q := embedded.New(openFile(t, dir), embedded.Options{})
	err := q.Run(t.Context(), func(ctx context.Context, _ []byte) error {
		fmt.Println("pushing")
		<-ctx.Done()
		return ctx.Err()
	})
	t.Fatalf("it ended by itself: %v", err)
}
