package translog_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/receipts/translog"
)

// TestFilesBySpecification reads the files of a log as the specifications of C2SP and RFC 6962 describe them, without
// the package that wrote them.
func TestFilesBySpecification(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	w.files.Objects = translog.NewFolder(dir)
	for _, n := range []int{200, 300, 100} {
		w.wait(time.Minute)
		w.chain(w.clock().Add(-time.Second), n, 30)
		w.publish(w.publisher(), n)
	}
	public, err := w.key.Public(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	size, root := signedTree(t, file(t, dir, "checkpoint"), w.key.Origin(), public)
	if size != 600 {
		t.Fatalf("the checkpoint has %d leaves, want 600", size)
	}

	var leaves [][]byte // the leaves of the bundles, which have their lengths before them
	for _, name := range []string{"000", "001", "002.p/88"} {
		bundle := file(t, dir, "tile/entries/"+name)
		for len(bundle) > 0 {
			n := int(binary.BigEndian.Uint16(bundle))
			leaves, bundle = append(leaves, bundle[2:2+n]), bundle[2+n:]
		}
	}
	if len(leaves) != size || !bytes.Equal(treeHash(leaves), root) {
		t.Errorf("%d leaves, whose root is not that of the checkpoint", len(leaves))
	}
	for i, e := range w.added {
		want := fmt.Sprintf("%s%016x", e.Hash, e.Expires.Unix())
		if !slices.ContainsFunc(leaves, func(l []byte) bool { return hex.EncodeToString(l) == want }) {
			t.Errorf("no leaf for entry %d", i)
		}
	}
	for at, name := range map[int]string{0: "0/000", 256: "0/001", 512: "0/002.p/88"} {
		var want []byte
		for _, l := range leaves[at:min(at+256, size)] {
			want = append(want, treeHash([][]byte{l})...)
		}
		if !bytes.Equal(file(t, dir, "tile/"+name), want) {
			t.Errorf("tile/%s does not have the hashes of its leaves", name)
		}
	}
	if want := slices.Concat(treeHash(leaves[:256]), treeHash(leaves[256:512])); !bytes.Equal(
		file(t, dir, "tile/1/000.p/2"), want) {
		t.Error("tile/1/000.p/2 does not have the roots of the full tiles")
	}
}

func file(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// signedTree checks the only signature of a checkpoint, and returns the size and the root.
func signedTree(t *testing.T, text []byte, origin string, key ed25519.PublicKey) (size int, root []byte) {
	t.Helper()
	body, signature, found := strings.Cut(string(text), "\n\n")
	body += "\n"
	id := sha256.Sum256(slices.Concat([]byte(origin+"\n"), []byte{1}, key))
	signature = strings.TrimSuffix(strings.TrimPrefix(signature, "— "+origin+" "), "\n")
	sig, err := base64.StdEncoding.DecodeString(signature)
	if !found || err != nil || !bytes.HasPrefix(sig, id[:4]) || !ed25519.Verify(key, []byte(body), sig[4:]) {
		t.Fatalf("the checkpoint is not signed: %q", text)
	}
	lines := strings.Split(body, "\n")
	size, err = strconv.Atoi(lines[1])
	root, e := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || e != nil || lines[0] != origin {
		t.Fatalf("the checkpoint is %q", text)
	}
	return size, root
}

// treeHash returns the Merkle tree hash of RFC 6962, section 2.1.
func treeHash(leaves [][]byte) []byte {
	if len(leaves) == 1 {
		sum := sha256.Sum256(slices.Concat([]byte{0}, leaves[0]))
		return sum[:]
	}
	k := 1
	for k*2 < len(leaves) {
		k *= 2
	}
	sum := sha256.Sum256(slices.Concat([]byte{1}, treeHash(leaves[:k]), treeHash(leaves[k:])))
	return sum[:]
}
