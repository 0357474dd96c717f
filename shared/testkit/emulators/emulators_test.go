package emulators_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

func TestEmulatorPerBinary(t *testing.T) {
	for name, start := range map[string]func(
		testing.TB) string{"Firestore": emulators.Firestore, "PubSub": emulators.PubSub} {
		t.Run(name, func(t *testing.T) {
			startsItsOwn(t)
			addr := start(t)
			if again := start(t); again != addr {
				t.Fatalf("first %s, then %s", addr, again)
			}
			if host, _, err := net.SplitHostPort(addr); err != nil || !net.ParseIP(host).IsLoopback() {
				t.Fatalf("%q is not a loopback address (%v)", addr, err)
			}
			res, err := http.Get("http://" + addr + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Fatalf("status %d", res.StatusCode)
			}
		})
	}
}

func TestStopEmulator(t *testing.T) {
	needJar(t)
	realpart.Emulators.Take(t)
	e, err := emulators.StartPubSub(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(); err != nil {
		t.Fatal(err)
	}
	if c, err := net.DialTimeout("tcp", e.Addr, time.Second); err == nil {
		c.Close()
		t.Fatal("it still listens")
	}
}

func TestExternalEmulator(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
	realpart.Emulators.Take(t)
	e, err := emulators.StartFirestore(t.Context(), io.Discard)
	if err != nil || e.Addr != "127.0.0.1:1" {
		t.Fatalf("got %v, %v; want e.Addr “127.0.0.1:1”", e, err)
	}
	if err := e.Stop(); err != nil {
		t.Fatal(err)
	}
}

func TestEmulatorAbsent(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", "")
	t.Setenv("JAVA_HOME", "")
	t.Run("java", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := emulators.StartFirestore(t.Context(), io.Discard)
		if !errors.Is(err, emulators.ErrAbsent) || !strings.Contains(err.Error(), "Java") {
			t.Fatal(err)
		}
	})
	t.Run("component", func(t *testing.T) {
		needJar(t)
		t.Setenv("CLOUD_EMULATORS_DIR", filepath.Join(t.TempDir(), "nothing"))
		_, err := emulators.StartFirestore(t.Context(), io.Discard)
		if !errors.Is(err, emulators.ErrAbsent) ||
			!strings.Contains(err.Error(), "gcloud components install cloud-firestore-emulator") {
			t.Fatal(err)
		}
	})
}

func TestStartCancelled(t *testing.T) {
	needJar(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := emulators.StartPubSub(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// needJar skips the test unless a Pub/Sub emulator of its own can be started.
func needJar(t *testing.T) {
	t.Helper()
	startsItsOwn(t)
	emulators.PubSub(t)
}

// startsItsOwn makes a test start its own emulators, instead of using those that the whole test run shares.
func startsItsOwn(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", "")
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
}
