package gauntlet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
	"github.com/countersign-run/countersign/shared/testkit/freeport"
)

const devProgram = "github.com/countersign-run/countersign/scripts/dev/local"

// startDev starts scripts/dev on a free port with an empty store. Stop stops it and removes its data.
func startDev(ctx context.Context) (url string, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "gauntlet")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	program := filepath.Join(dir, "dev")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, devProgram).CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("scripts/dev does not build: %w\n%s", err, out)
	}
	port, err := freeport.Port()
	if err != nil {
		return "", nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", port)
	server := exec.CommandContext(ctx, program, "-addr", addr)
	server.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"DATA_DIR=" + filepath.Join(dir, "data"), "LOG_LEVEL=silent"}
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		err := errors.Join(server.Process.Signal(os.Interrupt), server.Wait())
		return errors.Join(err, os.RemoveAll(dir))
	}
	url = "http://" + addr
	if err := serving(ctx, url); err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return url, stop, nil
}

// serving waits until the server responds.
func serving(ctx context.Context, url string) error {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := trial.Healthy(ctx, url); err == nil {
			return nil
		}
	}
	return trial.Healthy(ctx, url)
}
