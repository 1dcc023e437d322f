package release

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
)

// port is one of a pod or of a service.
type port struct {
	Name          string `json:"name"`
	Port          int    `json:"port"`
	ContainerPort int    `json:"containerPort"`
	TargetPort    string `json:"targetPort"`
	Protocol      string `json:"protocol"`
}

// object is of an object of Kubernetes what is read here.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
	Spec struct {
		Replicas             int             `json:"replicas"`
		ServiceName          string          `json:"serviceName"`
		Selector             json.RawMessage `json:"selector"`
		PodSelector          json.RawMessage `json:"podSelector"`
		Type                 string          `json:"type"`
		ClusterIP            string          `json:"clusterIP"`
		NotReady             bool            `json:"publishNotReadyAddresses"`
		TrafficPolicy        string          `json:"externalTrafficPolicy"`
		Ports                []port          `json:"ports"`
		MaxUnavailable       int             `json:"maxUnavailable"`
		VolumeClaimTemplates []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"volumeClaimTemplates"`
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec pod `json:"spec"`
		} `json:"template"`
		Ingress []struct {
			From  []map[string]json.RawMessage `json:"from"`
			Ports []struct {
				Port     string `json:"port"`
				Protocol string `json:"protocol"`
			} `json:"ports"`
		} `json:"ingress"`
	} `json:"spec"`
}

// pod is what a pod is made from.
type pod struct {
	Token        *bool           `json:"automountServiceAccountToken"`
	ServiceLinks *bool           `json:"enableServiceLinks"`
	Grace        int             `json:"terminationGracePeriodSeconds"`
	Security     json.RawMessage `json:"securityContext"`
	Volumes      []struct {
		Name     string          `json:"name"`
		EmptyDir json.RawMessage `json:"emptyDir"`
	} `json:"volumes"`
	Containers []struct {
		Image     string          `json:"image"`
		Security  json.RawMessage `json:"securityContext"`
		Ports     []port          `json:"ports"`
		Lifecycle struct {
			PreStop struct {
				Sleep struct {
					Seconds int `json:"seconds"`
				} `json:"sleep"`
			} `json:"preStop"`
		} `json:"lifecycle"`
		EnvFrom []struct {
			ConfigMap struct {
				Name string `json:"name"`
			} `json:"configMapRef"`
			Secret struct {
				Name string `json:"name"`
			} `json:"secretRef"`
		} `json:"envFrom"`
		Env []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
			From  struct {
				Field struct {
					Path string `json:"fieldPath"`
				} `json:"fieldRef"`
			} `json:"valueFrom"`
		} `json:"env"`
		Startup   probe `json:"startupProbe"`
		Liveness  probe `json:"livenessProbe"`
		Readiness probe `json:"readinessProbe"`
		Mounts    []struct {
			Name string `json:"name"`
			Path string `json:"mountPath"`
		} `json:"volumeMounts"`
	} `json:"containers"`
}

type probe struct {
	Get struct{ Path, Port string } `json:"httpGet"`
}

// same reports whether a text is JSON of the same value.
func same(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	return json.Unmarshal(got, &a) == nil && reflect.DeepEqual(a, b)
}

// cluster is what is deployed, by kind and name.
func cluster(t *testing.T) map[string]object {
	t.Helper()
	var list []object
	deployed(t, &list, "kubernetes", "../../deploy/kubernetes")
	found := map[string]object{}
	for _, o := range list {
		name := o.Metadata.Name
		if o.Kind == "ConfigMap" {
			name = name[:strings.LastIndex(name, "-")] // a hash of the settings follows
		}
		found[o.Kind+" "+name] = o
	}
	return found
}

// secret are the variables of the secret that docs/kubernetes.md makes.
func secret(t *testing.T) (variables []string) {
	t.Helper()
	const begin, end = "<!-- secret, checked by TestKubernetes -->\n```\n", "\n```\n"
	_, rest, ok := strings.Cut(string(read(t, repository, "docs/kubernetes.md")), begin)
	command, _, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 || !strings.HasPrefix(command, "kubectl create secret generic millrace ") {
		t.Fatalf("docs/kubernetes.md has no %q", begin)
	}
	for _, m := range regexp.MustCompile(`--from-literal=([A-Z_]+)=(\S+)`).FindAllStringSubmatch(command, -1) {
		if m[1] == "MILLRACE_MASTER_KEY" {
			m[2] = strings.Repeat("0123456789abcdef", 4)
		}
		variables = append(variables, m[1]+"="+m[2])
	}
	return variables
}

// TestKubernetes: pods run the image as it has to be run, with settings that there are.
func TestKubernetes(t *testing.T) {
	all := cluster(t)
	set := all["StatefulSet millrace"].Spec
	p := set.Template.Spec
	if len(p.Containers) != 1 {
		t.Fatalf("it has %d containers", len(p.Containers))
	}
	c := p.Containers[0]
	environ := secret(t)
	for name, value := range all["ConfigMap millrace"].Data {
		environ = append(environ, name+"="+value)
	}
	node := ""
	for _, e := range c.Env {
		if e.From.Field.Path == "metadata.name" {
			e.Value, node = "millrace-0", e.Name
		}
		environ = append(environ, e.Name+"="+strings.ReplaceAll(e.Value, "$("+node+")", "millrace-0"))
	}
	of := settingsOf(t, "deploy/kubernetes", environ)
	if len(c.EnvFrom) != 2 || c.EnvFrom[1].Secret.Name != "millrace" ||
		c.EnvFrom[0].ConfigMap.Name != all["ConfigMap millrace"].Metadata.Name {
		t.Errorf("its settings are from %+v", c.EnvFrom)
	}
	stops := stopping(of) + time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second
	if time.Duration(p.Grace)*time.Second <= stops {
		t.Errorf("it is killed after %d s, but may take %s", p.Grace, stops)
	}
	if !same(t, p.Security, `{"runAsNonRoot": true, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
		"fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"}}`) ||
		!same(t, c.Security, `{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
		"capabilities": {"drop": ["ALL"]}}`) {
		t.Errorf("it is not confined: %s %s", p.Security, c.Security)
	}
	if p.Token == nil || *p.Token || p.ServiceLinks == nil || *p.ServiceLinks {
		t.Error("it has a token of the cluster, or variables of services")
	}
	for name, tt := range map[string]struct{ got, want probe }{
		"startup":   {c.Startup, probe{struct{ Path, Port string }{"/readyz", "http"}}},
		"liveness":  {c.Liveness, probe{struct{ Path, Port string }{"/healthz", "http"}}},
		"readiness": {c.Readiness, probe{struct{ Path, Port string }{"/readyz/node", "http"}}},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, tt.got, tt.want)
		}
	}
	var volumes, mounts []string
	for _, v := range p.Volumes {
		if len(v.EmptyDir) > 0 {
			volumes = append(volumes, v.Name+" emptied")
		}
	}
	for _, v := range set.VolumeClaimTemplates {
		volumes = append(volumes, v.Metadata.Name+" kept")
	}
	for _, m := range c.Mounts {
		mounts = append(mounts, m.Name+" "+m.Path)
	}
	if !slices.Equal(volumes, []string{"tmp emptied", "data kept"}) ||
		!slices.Equal(mounts, []string{"data /var/lib/millrace", "tmp /tmp"}) {
		t.Errorf("its volumes are %q, at %q", volumes, mounts)
	}
	// A node is called by its pod's name, and calls itself there.
	own := all["Service "+set.ServiceName].Spec
	if of.Node.ID != "millrace-0" || of.AdvertiseURL == nil ||
		of.AdvertiseURL.String() != "http://millrace-0."+set.ServiceName+of.InternalAddr ||
		own.ClusterIP != "None" || !own.NotReady || set.Replicas < 2 {
		t.Errorf("node %s is at %s, by %+v", of.Node.ID, of.AdvertiseURL, own)
	}
}

// TestKubernetesServices: services lead to ports on which the nodes listen, and what is the nodes' own is open to
// nobody else.
func TestKubernetesServices(t *testing.T) {
	all := cluster(t)
	set := all["StatefulSet millrace"].Spec
	labels, err := json.Marshal(set.Template.Metadata.Labels)
	if err != nil {
		t.Fatal(err)
	}
	listening, err := config.Parse(nil, nil, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"http": listening.HTTPAddr + " TCP", "rtmp": listening.RTMPAddr + " TCP", "srt": listening.SRTAddr + " UDP",
		"nodes": ":9465 TCP", "metrics": ":9464 TCP", // of its environment
	}
	ports := map[string]string{}
	for _, p := range set.Template.Spec.Containers[0].Ports {
		ports[p.Name] = fmt.Sprintf(":%d %s", p.ContainerPort, protocol(p.Protocol))
	}
	if !reflect.DeepEqual(ports, want) {
		t.Errorf("its ports are %v, want %v", ports, want)
	}
	services := map[string]string{}
	for name, o := range all {
		selects := o.Spec.Selector
		switch o.Kind {
		case "Service":
			for _, p := range o.Spec.Ports {
				leads := fmt.Sprintf("%s %d %s", o.Spec.Type, p.Port, p.TargetPort)
				services[o.Metadata.Name] = strings.TrimSpace(leads)
				if !strings.HasSuffix(ports[p.TargetPort], " "+protocol(p.Protocol)) {
					t.Errorf("%s: %s is not %s", name, p.TargetPort, protocol(p.Protocol))
				}
			}
			if o.Spec.Type == "LoadBalancer" && o.Spec.TrafficPolicy != "Local" {
				t.Errorf("%s hides the addresses of encoders", name)
			}
			if !same(t, selects, string(labels)) {
				t.Errorf("%s selects %s, pods have %s", name, selects, labels)
			}
			continue
		case "NetworkPolicy":
			selects = o.Spec.PodSelector
			for _, rule := range o.Spec.Ingress {
				for _, p := range rule.Ports {
					if !strings.HasSuffix(ports[p.Port], " "+protocol(p.Protocol)) {
						t.Errorf("%s: there is no %s over %s", name, p.Port, protocol(p.Protocol))
					}
					from := fmt.Sprintf("%s", rule.From)
					own := "[map[podSelector:" + `{"matchLabels":` + string(labels) + "}]]"
					if p.Port == "nodes" && from != own {
						t.Errorf("%s: the nodes' port is open to %s, want %s", name, from, own)
					}
				}
			}
		case "ConfigMap":
			continue
		}
		if !same(t, selects, `{"matchLabels": `+string(labels)+`}`) {
			t.Errorf("%s selects %s, pods have %s", name, selects, labels)
		}
	}
	if want := map[string]string{
		"millrace": "80 http", "millrace-rtmp": "LoadBalancer 1935 rtmp", "millrace-srt": "LoadBalancer 6001 srt",
		"millrace-nodes": "9465 nodes",
	}; !reflect.DeepEqual(services, want) {
		t.Errorf("services lead to %v, want %v", services, want)
	}
	if all["PodDisruptionBudget millrace"].Spec.MaxUnavailable != 1 {
		t.Error("maintenance may take several nodes")
	}
}

func protocol(named string) string {
	if named == "" {
		return "TCP"
	}
	return named
}

// TestKubernetesRefuses: an object with a field that there is not is not read.
func TestKubernetesRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ file, old, by string }{
		"read":             {"nodes.yaml", "", ""},
		"in small letters": {"nodes.yaml", "readOnlyRootFilesystem", "readonlyRootFilesystem"},
		"misspelt":         {"nodes.yaml", "runAsNonRoot", "runAsNoRoot"},
		"of another type":  {"nodes.yaml", "replicas: 2", "replicas: two"},
		"misplaced":        {"services.yaml", "spec:\n", "spec:\n  replicas: 2\n"},
		"unknown kind":     {"disruption.yaml", "PodDisruptionBudget", "PodDisruption"},
	} {
		folder := t.TempDir()
		if err := copyTree(filepath.Join(folder, "x"), repository+"/deploy/kubernetes"); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, "x", tt.file)
		text := strings.Replace(string(read(t, file)), tt.old, tt.by, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "run", ".", "kubernetes", filepath.Join(folder, "x"))
		cmd.Dir = repository + "/tools/deploy"
		if out, err := cmd.CombinedOutput(); (err == nil) != (tt.old == "") {
			t.Errorf("%s: %v:\n%s", name, err, out)
		}
	}
}
