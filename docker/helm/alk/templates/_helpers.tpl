{{- define "alk.labels" -}}
app.kubernetes.io/name: alk
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* Of one role: what its pods are found by. Takes a dict of root and role. */ -}}
{{- define "alk.selector" -}}
app.kubernetes.io/name: alk
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "alk.name" -}}
{{- printf "%s-%s" .root.Release.Name .role | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* A Deployment and the PodDisruptionBudget of one role. */ -}}
{{- define "alk.role" -}}
{{- $values := .root.Values }}
{{- $own := index $values .role }}
{{- $isApi := eq .role "api" }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "alk.name" . }}
  labels:
    {{- include "alk.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  replicas: {{ $own.replicas }}
  selector:
    matchLabels:
      {{- include "alk.selector" . | nindent 6 }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: {{ if $isApi }}0{{ else }}1{{ end }}
      maxSurge: 1
  template:
    metadata:
      labels:
        {{- include "alk.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .role }}
      annotations:
        checksum/config: {{ include (print .root.Template.BasePath "/config.yaml") .root | sha256sum }}
        prometheus.io/scrape: "true"
        prometheus.io/port: "8080"
        prometheus.io/path: /metrics
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ .root.Release.Name }}
      automountServiceAccountToken: false
      # Replies in flight are finished, then what was begun.
      terminationGracePeriodSeconds: 60
      {{- with $values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
        seccompProfile:
          type: RuntimeDefault
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "alk.selector" . | nindent 14 }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: alk
          image: "{{ $values.image.repository }}:{{ default .root.Chart.AppVersion $values.image.tag }}"
          imagePullPolicy: {{ $values.image.pullPolicy }}
          env:
            - name: ALK_ROLES
              value: {{ .role }}
          envFrom:
            - configMapRef:
                name: {{ .root.Release.Name }}
          ports:
            - name: http
              containerPort: 8080
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          # A first start waits for Kafka and ClickHouse, and applies changes of the tables.
          startupProbe:
            httpGet: { path: /healthz, port: http }
            periodSeconds: 5
            failureThreshold: 60
          livenessProbe:
            httpGet: { path: /healthz, port: http }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            # Of an API process: a write would commit, and a list would answer.
            httpGet: { path: {{ if $isApi }}/readyz{{ else }}/healthz{{ end }}, port: http }
            periodSeconds: 10
            timeoutSeconds: 10
            failureThreshold: 3
          resources:
            {{- toYaml $own.resources | nindent 12 }}
          volumeMounts:
            - { name: tmp, mountPath: /tmp }
            - { name: cache, mountPath: /home/node/.cache }
            - { name: secrets, mountPath: /run/alk/secrets, readOnly: true }
            - { name: signing-key, mountPath: /run/alk/signing-key, readOnly: true }
            {{- if $values.kafka.tls.existingSecret }}
            - { name: kafka-tls, mountPath: /run/alk/kafka-tls, readOnly: true }
            {{- end }}
            {{- if and $isApi $values.exports.enabled }}
            - { name: exports, mountPath: /data }
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {}
        # The browser that prints PDFs is unpacked there.
        - name: cache
          emptyDir: {}
        - name: secrets
          secret:
            secretName: {{ $values.existingSecret }}
            defaultMode: 0440
        - name: signing-key
          secret:
            secretName: {{ $values.signingKeySecret }}
            defaultMode: 0440
        {{- with $values.kafka.tls.existingSecret }}
        - name: kafka-tls
          secret:
            secretName: {{ . }}
        {{- end }}
        {{- if and $isApi $values.exports.enabled }}
        - name: exports
          persistentVolumeClaim:
            claimName: {{ .root.Release.Name }}-exports
        {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "alk.name" . }}
  labels:
    {{- include "alk.labels" .root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "alk.selector" . | nindent 6 }}
{{- end }}
