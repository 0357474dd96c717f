package check_test

import (
	"os/exec"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// costly measures the cost of showing Markdown in the chat, which a stranger can make the model write. The cost must
// grow no faster than the length of the text. It is processor time, which other load on the machine does not change. A
// quadratic cost took more than 16 s.
const costly = `
const element = () => ({ append() {}, after() {}, appendChild: (el) => el, setAttribute() {} });
globalThis.document = { createElement: element, createDocumentFragment: element, createTextNode: element };
const { markdown } = await import('../../shared/web/widget/site/markdown.js');
for (const piece of ['\x60', ' ', '**a ', '_a ', '[', '[a](', '* ', '# ', '\x60a', '\x60\x60a\x60', '\n ', '\t\n', '1. ', '***', '_*']) {
  const began = process.cpuUsage();
  markdown(piece.repeat(262_144 / piece.length) + 'x');
  const { user } = process.cpuUsage(began);
  if (user > 10e6) throw new Error(JSON.stringify(piece) + ' takes ' + user / 1e6 + ' s');
}`

func TestMarkdownCost(t *testing.T) {
	node := browsertest.Node(t)
	if out, err := exec.CommandContext(t.Context(), node, "--input-type=module", "-e",
		costly).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
