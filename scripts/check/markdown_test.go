package check_test

import (
	"os/exec"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// What strangers bring the model to write is shown in the chat: the cost of it grows with its length and no faster.
const costly = `
const element = () => ({ append() {}, after() {}, appendChild: (el) => el, setAttribute() {} });
globalThis.document = { createElement: element, createDocumentFragment: element, createTextNode: element };
const { markdown } = await import('../../shared/widget/site/markdown.js');
for (const piece of ['\x60', ' ', '**a ', '_a ', '[', '[a](', '* ', '# ', '\x60a', '\x60\x60a\x60', '\n ', '\t\n', '1. ', '***', '_*']) {
  const began = performance.now();
  markdown(piece.repeat(65_536 / piece.length) + 'x');
  const took = performance.now() - began;
  if (took > 1000) throw new Error(JSON.stringify(piece) + ' takes ' + took + ' ms');
}`

func TestMarkdownIsCheapToShow(t *testing.T) {
	node := browsertest.Node(t)
	if out, err := exec.CommandContext(t.Context(), node, "--input-type=module", "-e",
		costly).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
