package docker_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	engine "github.com/countersign-run/countersign/shared/tools/container/docker"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

// TestFetchCutOff loses the engine's answer while an installer runs, or after it. The volume stays, because another
// process may be filling it. The next attempt fills it once.
func TestFetchCutOff(t *testing.T) {
	files := commitFiles{"web/go.mod": "module example.com/web\n", "web/go.sum": ""}
	for broken, filled := range map[fakegoogle.Kind]bool{fakegoogle.ResetBefore: false, fakegoogle.ResetAfter: true} {
		fake := fakedocker.Open(t, fakedocker.Options{Images: []string{toolchain}, Files: map[string]string{}})
		e, err := engine.Open(engine.Config{Host: fake.Host, Timeout: await.Most})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() }) // it never fails
		r := &real{tools: docker.New(docker.Options{Engine: e, Images: []string{toolchain}, Checkouts: files,
			Packages: packagesOf(t, "packages.example.com")})}
		fetch := r.tools[docker.FetchDependencies]
		c, _ := r.approvedFetch(t, nil)
		fake.Break(fakedocker.Install, fakegoogle.Fault{Kind: broken})
		fake.Break(fakedocker.ExecInspect, fakegoogle.Fault{}, fakegoogle.Fault{},
			fakegoogle.Fault{Kind: fakegoogle.StatusBefore}) // the first two answers are for the check and for tar
		if raw, err := fetch.Execute(t.Context(), c); !tool.IsAmbiguous(err) {
			t.Errorf("%s: %s, %v; want an unknown outcome", broken, raw, err)
		}
		if all := fake.AllVolumes(); len(all) != 1 || all[0].Filled != filled {
			t.Errorf("%s: the volumes are %+v; want one, filled: %t", broken, all, filled)
		}
		if raw, err := fetch.Execute(t.Context(), c); err != nil {
			t.Errorf("%s: the next try: %s, %v", broken, raw, err)
		}
		installed := 0
		for _, d := range fake.Deeds() {
			if d.Filled != "" {
				installed++
			}
		}
		if all := fake.AllVolumes(); installed != 1 || len(all) != 1 || !all[0].Filled || len(fake.Containers()) > 0 {
			t.Errorf("%s: %d installations, volumes %+v, %d containers; want 1, one filled, 0", broken, installed, all,
				len(fake.Containers()))
		}
	}
}

// TestFetchFreeText checks that the facts that this program adds to a call, such as the operator's hosts, are not free
// text. A host's name counts as a link from a stranger, so no grant of a plan could otherwise apply.
func TestFetchFreeText(t *testing.T) {
	r := &real{tools: docker.New(docker.Options{Images: []string{toolchain},
		Packages:  packagesOf(t, "packages.example.com"),
		Checkouts: commitFiles{"web/go.mod": "module example.com/web\n", "web/go.sum": ""}})}
	c, _ := r.approvedFetch(t, nil)
	if text, err := r.tools[docker.FetchDependencies].FreeText(c.Args); err != nil || len(text) > 0 {
		t.Errorf("free text %q, %v; want none", text, err)
	}
}
