{{/*
`make deploy` copies the manifests of deploy/base to files/; the templates set the values in them. A file is read into a
dict with its documents as `items`. The namespace of the release replaces claimgate-system.
*/}}
{{- define "claimgate.documents" -}}
{{- $items := list -}}
{{- $text := .root.Files.Get (printf "files/%s" .file) | replace "claimgate-system" .root.Release.Namespace -}}
{{- range regexSplit "(?m)^---\\s*$" $text -1 -}}
{{- $document := fromYaml . -}}
{{- $kind := $document.kind | default "" -}}
{{- $ours := or (and (eq $kind "ServiceAccount") $.root.Values.serviceAccount.create) (and (regexMatch "^(Cluster)?Role(Binding)?$" $kind) $.root.Values.rbac.create) -}}
{{- if or $ours (and $kind (not (regexMatch "^(ServiceAccount|(Cluster)?Role(Binding)?)$" $kind))) -}}
{{- $items = append $items $document -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "items" $items) -}}
{{- end -}}

{{/*
The rendered form of an object, with the namespace of the release and the common labels. Helm never deletes a
CustomResourceDefinition, because the API server would then delete every policy of the cluster.
*/}}
{{- define "claimgate.object" -}}
{{- $metadata := .object.metadata -}}
{{- if and (has .object.kind (list "ClusterRole" "ClusterRoleBinding" "PriorityClass" "CustomResourceDefinition" "ValidatingWebhookConfiguration" "MutatingWebhookConfiguration")) | not -}}
{{- $_ := set $metadata "namespace" .root.Release.Namespace -}}
{{- end -}}
{{- $labels := dict "app.kubernetes.io/part-of" "claimgate" "app.kubernetes.io/managed-by" .root.Release.Service "app.kubernetes.io/instance" .root.Release.Name "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version) -}}
{{- $_ := set $metadata "labels" (merge (dict) ($metadata.labels | default dict) $labels .root.Values.commonLabels) -}}
{{- $annotations := merge (dict) ($metadata.annotations | default dict) .root.Values.commonAnnotations -}}
{{- if eq .object.kind "CustomResourceDefinition" -}}
{{- $_ := set $annotations "helm.sh/resource-policy" "keep" -}}
{{- else if eq .object.kind "ServiceAccount" -}}
{{- $annotations = merge (dict) .root.Values.serviceAccount.annotations $annotations -}}
{{- $_ := set $metadata "labels" (merge (dict) $metadata.labels .root.Values.serviceAccount.labels) -}}
{{- end -}}
{{- if $annotations -}}
{{- $_ := set $metadata "annotations" $annotations -}}
{{- end -}}
{{ toYaml .object }}
{{- end -}}

{{- define "claimgate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The common settings of the Pods of both Deployments. */}}
{{- define "claimgate.pod" -}}
{{- $pod := .pod -}}
{{- $values := .root.Values -}}
{{- $_ := unset $pod "priorityClassName" -}}
{{- range $key := list "priorityClassName" "nodeSelector" "tolerations" "affinity" "imagePullSecrets" "dnsConfig" "hostAliases" -}}
{{- with index $values $key -}}{{- $_ := set $pod $key . -}}{{- end -}}
{{- end -}}
{{- with $values.podSecurityContext -}}{{- $_ := set $pod "securityContext" . -}}{{- end -}}
{{- range $container := $pod.containers -}}
{{- $_ := set $container "image" (include "claimgate.image" $.root) -}}
{{- with $values.containerSecurityContext -}}{{- $_ := set $container "securityContext" . -}}{{- end -}}
{{- with $values.image.pullPolicy -}}{{- $_ := set $container "imagePullPolicy" . -}}{{- end -}}
{{- if and (ne $.root.Release.Namespace "claimgate-system") (not $container.command) (ne (first $container.args) "certs") -}}
{{- $_ := set $container "args" (append $container.args (printf "--own-namespace=%s" $.root.Release.Namespace)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $pod -}}
{{- end -}}

{{/* Own policies: a volume of a Pod, and the argument and mount of its container. */}}
{{- define "claimgate.policies" -}}
{{- if .root.Values.policies -}}
{{- $container := first .pod.containers -}}
{{- $mount := dict "name" "policies" "mountPath" "/etc/claimgate/policies" "readOnly" true -}}
{{- $_ := set $container "args" (append $container.args "--policies=/etc/claimgate/policies") -}}
{{- $_ := set $container "volumeMounts" (append ($container.volumeMounts | default list) $mount) -}}
{{- $volume := dict "name" "policies" "configMap" (dict "name" "claimgate-policies") -}}
{{- $_ := set .pod "volumes" (append (.pod.volumes | default list) $volume) -}}
{{- end -}}
{{- toYaml .pod -}}
{{- end -}}

{{/* claimgate.yaml: a volume of a Pod, and the variable and mount of its container. */}}
{{- define "claimgate.config" -}}
{{- if .root.Values.config -}}
{{- $container := first .pod.containers -}}
{{- $variable := dict "name" "CLAIMGATE_CONFIG" "value" "/etc/claimgate/config/claimgate.yaml" -}}
{{- $_ := set $container "env" (append ($container.env | default list) $variable) -}}
{{- $mount := dict "name" "config" "mountPath" "/etc/claimgate/config" "readOnly" true -}}
{{- $_ := set $container "volumeMounts" (append ($container.volumeMounts | default list) $mount) -}}
{{- $volume := dict "name" "config" "configMap" (dict "name" "claimgate-config") -}}
{{- $_ := set .pod "volumes" (append (.pod.volumes | default list) $volume) -}}
{{- end -}}
{{- toYaml .pod -}}
{{- end -}}

{{/*
The matchConditions of exempt users, as `conditions`: those that webhook/export/exemptions.py writes. An expired
exemption has no condition.
*/}}
{{- define "claimgate.exemptions" -}}
{{- $conditions := list -}}
{{- range $number, $exemption := .Values.config.exemptions -}}
{{- if ge (toString $exemption.expires) (dateInZone "2006-01-02" now "UTC") -}}
{{- $parts := list -}}
{{- range $exemption.users -}}
{{- $parts = append $parts (printf "request.userInfo.?username.orValue(\"\") != %s" (toRawJson .)) -}}
{{- end -}}
{{- $groups := list -}}
{{- range $exemption.groups -}}
{{- $groups = append $groups (printf "%s in request.userInfo.?groups.orValue([])" (toRawJson .)) -}}
{{- end -}}
{{- if $groups -}}
{{- $parts = append $parts (printf "(request.userInfo.?groups.orValue([]).size() > 1000 || !(%s))" (join " || " $groups)) -}}
{{- end -}}
{{- $conditions = append $conditions (dict "name" (printf "not-exempt-%d-until-%s" $number $exemption.expires) "expression" (join " && " $parts)) -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "conditions" $conditions) -}}
{{- end -}}

{{/* The number of old ReplicaSets of a Deployment. */}}
{{- define "claimgate.history" -}}
{{- if ne .root.Values.revisionHistoryLimit nil -}}
{{- $_ := set .spec "revisionHistoryLimit" (int .root.Values.revisionHistoryLimit) -}}
{{- end -}}
{{- end -}}

{{/*
The names of the webhooks of a configuration that must not fail closed yet, separated by blanks: those without a caBundle
in the cluster. A call without a bundle always fails, so under `Fail` such a webhook would refuse every request until it
has the bundle. Without a cluster, as for `helm template`, the text is empty.
*/}}
{{- define "claimgate.staged" -}}
{{- $trusted := list -}}
{{- range (lookup .object.apiVersion .object.kind "" .object.metadata.name).webhooks -}}
{{- if .clientConfig.caBundle -}}{{- $trusted = append $trusted .name -}}{{- end -}}
{{- end -}}
{{- $staged := list -}}
{{- if and (ne .root.Values.certificates.issuer "none") (lookup "v1" "Namespace" "" "kube-system") -}}
{{- range .object.webhooks -}}
{{- if not (has .name $trusted) -}}{{- $staged = append $staged .name -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- join " " $staged -}}
{{- end -}}
