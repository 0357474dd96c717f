package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

// TestMain runs a worker if this test binary was started as one.
func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		if err := work(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leaktest.Main(m)
}

func matrix(t *testing.T, store string, kills int) {
	if testing.Short() {
		kills /= 10
	}
	var out strings.Builder
	o := options{kills: kills, store: store, lanes: 8, seed: 20261121}
	r, err := try(t.Context(), o, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.print(&out)
	t.Log("\n" + out.String())
	if r.violations > 0 {
		t.Errorf("%d violations", r.violations)
	}
	if r.struck < kills*8/10 || r.points < 500 {
		t.Errorf("%d of %d were struck at %d points: too few to say anything", r.struck, kills, r.points)
	}
}

func TestMatrix(t *testing.T) { matrix(t, "embedded", 240) }

func TestMatrixOnFirestore(t *testing.T) {
	e, err := emulators.StartFirestore(t.Context(), io.Discard)
	if errors.Is(err, emulators.ErrAbsent) && os.Getenv("REQUIRE_ALL") == "" {
		t.Skip("SKIP: the Firestore emulator is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("FIRESTORE_EMULATOR_HOST", e.Addr)
	matrix(t, "firestore", 60)
}

// TestRandomMoments kills at random moments.
func TestRandomMoments(t *testing.T) {
	r, err := try(t.Context(), options{kills: 40, store: "embedded", lanes: 8, seed: 20261122, anywhen: true},
		t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.details {
		t.Error(d)
	}
}
